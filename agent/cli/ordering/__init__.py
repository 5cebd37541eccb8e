"""Verbs that order: pause, release, kill and the others that a daemon obeys."""
