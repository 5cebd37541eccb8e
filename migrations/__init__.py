"""The migrations that bring a ledger of any release to the present schema."""
