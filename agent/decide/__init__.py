"""Pure decisions: a plan from a fleet and numbers, without clock, network, logger or randomness."""
