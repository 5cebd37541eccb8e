"""Strategies that spend nothing: what each would have done and cost beside the live one."""
