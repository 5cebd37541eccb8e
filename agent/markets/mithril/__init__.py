"""Mithril: the only folder with its words."""
