"""Strategies: pairs of code and numbers with one stem."""
