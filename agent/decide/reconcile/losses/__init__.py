"""Losses of leases: the cause, its evidence about other renters, and the cooldown of the host."""
