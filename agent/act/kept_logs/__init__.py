"""The last output of containers, kept beside the ledger."""
