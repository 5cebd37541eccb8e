"""Our own recorded time as a problem: the searches of a ledger, stretch by stretch, under strategies on paper."""
