"""One job with a deadline over one or several pools: windows of traces, a run tick by tick, and the exact optimum."""
