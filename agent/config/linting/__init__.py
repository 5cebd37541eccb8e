"""Findings in a valid configuration that are probably mistakes."""
