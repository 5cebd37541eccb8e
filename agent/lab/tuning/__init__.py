"""The search for the numbers of a strategy."""
