"""Listings against leases and intents: facts with cause and evidence."""
