"""The steps that lead a ledger of any release to the present one."""
