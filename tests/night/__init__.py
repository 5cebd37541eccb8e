"""All that takes too long for CI, part by part, with the time of each."""
