"""Verbs that give orders: pause, release, kill and others."""
