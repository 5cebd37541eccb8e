"""What hours of work are worth: the value of an hour, the net value of an offer, and the frontier of both."""
