"""What `hedged` does with a slot: one module for each way to hold it, chosen in `strategies/hedged.py`."""
