"""When a workload may run and for how long: pure verdicts over values that the edge computed."""
