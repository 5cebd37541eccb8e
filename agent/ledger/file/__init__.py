"""The file and its neighbours: connection, migration, backup, restore, check."""
