"""What was spent and what it was worth: metering, paid time by phase, savings."""
