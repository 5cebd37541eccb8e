"""The work's whole output on its way into the bucket."""
