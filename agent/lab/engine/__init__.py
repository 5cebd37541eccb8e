"""The loop over a market in memory, with the same plan() as live."""
