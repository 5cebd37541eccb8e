"""Checks before every route: who asks, under which name, how much and how often."""
