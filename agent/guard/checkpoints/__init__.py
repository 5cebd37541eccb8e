"""Checkpoints: which files they are, how they get into the bucket, and back to a disk."""
