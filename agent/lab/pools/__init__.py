"""One job with a hard deadline over several pools at once: zones, hosts or markets whose capacity comes and goes."""
