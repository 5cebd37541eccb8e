"""The feed: one read model of the fleet, as JSON and as server-sent events, for the page, the terminal and others."""
