"""Failovers over real processes: two daemons, a PostgreSQL server and a market; the leader dies at a chosen step."""
