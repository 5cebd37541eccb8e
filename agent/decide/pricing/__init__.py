"""The value of an offer: does it match, what does a useful hour cost there, and what to bid."""
