"""What the guards of leases say, and what follows from it."""
