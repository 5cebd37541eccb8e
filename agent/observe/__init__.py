"""Asks the markets, and makes one value of their answers and the ledger's."""
