"""Services that must stay warm: how many slots, and on which capacity."""
