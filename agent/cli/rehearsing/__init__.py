"""Verbs that cost nothing: rehearse, simulate, replay, estimate."""
