"""The daemon's work for guards: their start, their orders and their signs of life."""
