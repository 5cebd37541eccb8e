"""The next task of an array on this host, once the present one is done."""
