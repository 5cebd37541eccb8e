"""The same plan() on recorded and drawn time, without HTTP: a market in memory, and an engine that runs over it."""
