"""Simulated markets of four vendors: hosts, demand, auctions and billing that behave as the recorded markets did."""
