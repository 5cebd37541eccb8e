"""Carries out a person's orders."""
