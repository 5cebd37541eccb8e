"""The HTTP surface of the simulated Mithril."""
