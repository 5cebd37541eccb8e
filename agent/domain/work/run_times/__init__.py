"""How long, and in which times, a workload may run."""
