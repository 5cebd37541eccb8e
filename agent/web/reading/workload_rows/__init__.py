"""Rows of JSON about whole workloads: how far each is, what it may, and what it wants."""
