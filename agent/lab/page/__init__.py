"""Pages of the lab. Each is one file that needs no network and no script."""
