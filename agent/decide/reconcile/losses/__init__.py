"""Losses of leases: the cause, what it tells of other renters, and the cooldown of the host."""
