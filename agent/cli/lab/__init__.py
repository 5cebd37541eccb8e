"""`gpubid lab`: replay, compare, tune. Nothing here rents anything."""
