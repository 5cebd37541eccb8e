"""`gpubid lab`: replay, compare, tune; nothing here rents anything."""
