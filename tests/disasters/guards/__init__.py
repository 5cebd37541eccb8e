"""Guards as a story plays them: scripts on the world's clock, and one bucket in memory."""
