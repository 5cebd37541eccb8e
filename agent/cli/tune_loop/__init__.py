"""`gpubid tune`: the guided loop from data to a promoted strategy."""
