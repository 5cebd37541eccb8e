"""Disasters: the whole program over both simulated markets, a deterministic world per seed, judged each cycle."""
