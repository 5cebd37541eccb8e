"""What is done for guards: their start, and what they are asked for."""
