"""What a job would cost before it starts: pure arithmetic, in dollars and hours, never sums that are paid."""
