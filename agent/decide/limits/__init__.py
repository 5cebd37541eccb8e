"""Limits: committed spend, hard caps, alerts before them, credit, risk."""
