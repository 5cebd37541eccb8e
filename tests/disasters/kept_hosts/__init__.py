"""Arrays in stories whose tasks go on with the host of the one before."""
