"""Strategies compared over the cases of a problem."""
