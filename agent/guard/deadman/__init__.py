"""The dead man's switch: it counts the daemon's silence, and asks the market to stop the instance."""
