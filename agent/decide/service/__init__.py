"""Services that must stay warm: the number of slots, and their capacity."""
