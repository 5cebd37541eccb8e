"""What a person ordered and is told: holds, a kill, a reload, notices, what nobody accounts for."""
