"""Decisions about a lease: rebid, resume, move, fall back, return, and end."""
