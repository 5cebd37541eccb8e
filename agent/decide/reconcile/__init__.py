"""Listings compared with leases and intents: facts with cause and evidence."""
