"""What an offer is worth: does it match, what does a useful hour on it cost, what is bid for it."""
