"""Tasks of arrays: whether an array works at all, and what becomes of a task whose work failed."""
