"""The nouns of what must run: workloads, deadlines, decisions."""
