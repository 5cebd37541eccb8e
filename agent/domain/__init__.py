"""The nouns: frozen values without clock, network, logger or randomness."""
