"""Work with a deadline: its progress, how capacity comes and goes, when to rent on demand."""
