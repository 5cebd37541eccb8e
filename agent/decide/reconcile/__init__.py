"""Listings against leases and intents: what happened, with cause and evidence."""
