"""Real processes of simulated containers: only where a climate says so, on this machine."""
