"""Three simulated markets: hosts, demand, an auction and billing that behave as the recorded markets did."""
