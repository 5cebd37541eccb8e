"""Probes of the work itself: what to probe, whether it is ready, and whether it still lives."""
