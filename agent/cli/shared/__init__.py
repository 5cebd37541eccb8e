"""What most verbs begin or end with: the session, the daemon's socket, exit codes."""
