"""Recorded time: traces, spells of capacity, a ledger's own history."""
