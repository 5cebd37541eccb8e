"""Limits: committed spend, hard caps, alerts before they are reached, credit, and risk."""
