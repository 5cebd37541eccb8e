"""A simulated dstack server with clouds behind it: the only folder with its words."""
