"""Prices of GPUs on other clouds: dated, sourced figures to compare with."""
