"""Foreign records of markets as trace files, one for each pool. Each kind of record has its own module."""
