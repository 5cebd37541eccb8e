"""Idle GPUs in stories: what is done about them, and whether they truly idled."""
