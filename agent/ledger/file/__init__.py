"""The ledger's file: connection, migration, backup, restore, check, and the small files beside it."""
