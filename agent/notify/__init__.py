"""Notifications: which events, how often, through which channel. Nothing here decides or blocks a cycle."""
