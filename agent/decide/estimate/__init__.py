"""The cost of a job before it starts: pure arithmetic in dollars and hours; no sum here is ever paid."""
