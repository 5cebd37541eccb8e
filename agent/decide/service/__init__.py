"""Services that must stay up: how many slots are kept warm, and on which capacity."""
