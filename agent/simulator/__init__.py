"""A market in a box: hosts, demand, an auction and a till that behave as the recorded market did."""
