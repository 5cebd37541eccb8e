"""The end of leases: when it is sent, without the ledger too, and what a refusal of it means."""
