"""Orders of a person, and notices for him: holds, a kill, a reload, and costs that nobody accounts for."""
