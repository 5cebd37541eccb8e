"""The ledger: every durable record, in one SQLite file; the only folder with SQL."""
