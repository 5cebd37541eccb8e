"""The ledger on a PostgreSQL server: dialect, connections, tables, checks. Imported only if a server is named."""
