"""Nouns of a market: offers, hosts, instances, prices."""
