"""The nouns of our records: leases, intents, events, money and cooldowns."""
