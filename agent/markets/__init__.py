"""Adapters: vendor words stop here."""
