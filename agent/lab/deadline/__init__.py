"""One job with a hard deadline over one pool: the problem of "Can't Be Late" (Wu et al., NSDI 2024)."""
