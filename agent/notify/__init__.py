"""Telling people: which events, how often, by which channel; nothing here decides or blocks a cycle."""
