"""Measurements: each prints its figure beside the figure of comparison; none of them is a test."""
