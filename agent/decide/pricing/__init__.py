"""The value of an offer: whether it fits, the cost of a useful hour on it, and the bid."""
