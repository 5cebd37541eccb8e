"""The adapter to a server of dstack, which rents at the clouds whose keys its operator gave it."""
