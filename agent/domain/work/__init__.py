"""The nouns of work: workloads, deadlines, decisions."""
