"""What a cycle records about the times in which workloads may run."""
