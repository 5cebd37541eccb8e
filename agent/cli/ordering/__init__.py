"""Verbs that give orders: pause, release, kill and the others that a daemon obeys."""
