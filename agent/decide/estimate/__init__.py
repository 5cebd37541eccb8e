"""The estimated cost of a job before it starts, in dollars and hours. No sum here is ever paid."""
