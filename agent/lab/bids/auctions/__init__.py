"""Mithril's timed auctions in memory: limit bidding by value, compared with two fixed rules."""
