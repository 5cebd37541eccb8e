"""Shared by the instances of the simulated markets: containers, images, programs, ports and billing."""
