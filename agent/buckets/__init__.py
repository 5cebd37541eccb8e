"""Buckets in which guards keep checkpoints and leave messages."""
