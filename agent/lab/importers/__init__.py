"""Foreign records of markets -> trace files, one a pool; each kind in its own file."""
