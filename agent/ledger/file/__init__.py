"""The file itself and what lies beside it: connection, migration, backup, restore, check."""
