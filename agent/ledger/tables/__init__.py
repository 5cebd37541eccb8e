"""The tables, one module each: their rows, their statements, their values in our types."""
