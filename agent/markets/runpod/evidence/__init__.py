"""What the market's fields and surfaces prove of a pod together."""
