"""The ledger: what is durable, in one SQLite file; the only folder that knows SQL."""
