"""The rules of `hedged` for a slot: one module for each, chosen in `strategies/hedged.py`."""
