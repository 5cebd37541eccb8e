"""Ask the markets, and make one value of what they and the ledger say."""
