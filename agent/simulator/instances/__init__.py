"""Shared by the instances of both markets: containers, images, programs, ports and billing."""
