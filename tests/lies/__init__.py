"""One wrong field at a time: every field that a decision reads, in every way that it may be wrong."""
