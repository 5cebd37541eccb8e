"""Shared by most verbs: the session, the daemon's socket, exit codes."""
