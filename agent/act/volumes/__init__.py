"""The costs that no lease has: network volumes."""
