"""The SQLite ledger: the only place with SQLAlchemy."""
