"""The nouns of what we keep a record of: leases, intents, events, money and rests."""
