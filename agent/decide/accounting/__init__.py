"""Spend and its use: metering, paid time by phase, and savings."""
