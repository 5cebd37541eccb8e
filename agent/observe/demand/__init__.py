"""Reads how many tasks wait in queues of the operator's own."""
