"""Vast.ai's HTTP API, as its own clients speak it."""
