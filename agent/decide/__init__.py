"""Pure: a fleet and numbers in, a plan out; no clock, network, logger or randomness."""
