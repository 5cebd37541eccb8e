"""The tables, one module each: rows, statements, and values in our types."""
