"""The nouns: frozen values that know no clock, network, logger or randomness."""
