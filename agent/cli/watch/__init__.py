"""Verbs that read: fleet, plan, explain, spend, ledger, report, logs."""
