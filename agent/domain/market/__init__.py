"""The nouns of what a market sells: offers, hosts, instances, prices."""
