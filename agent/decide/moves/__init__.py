"""What to do with a lease: rebid, resume, move, fall back, return, and end."""
