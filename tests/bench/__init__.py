"""Measurements: each prints what it found beside what it is compared to; none of them is a test."""
