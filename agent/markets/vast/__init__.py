"""Vast.ai: the only folder that knows its words."""
