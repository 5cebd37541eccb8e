"""The nouns of a market: offers, hosts, instances, prices."""
