"""The problem `availability`: keep a number of slots warm over several pools, on recorded capacity."""
