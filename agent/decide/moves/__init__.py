"""What is done with a lease that is held: re-bid, resume, move, fall back, return, and what must end."""
