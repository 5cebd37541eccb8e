"""Carries a plan out: every side effect goes through the journal, once."""
