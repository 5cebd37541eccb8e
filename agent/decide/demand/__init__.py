"""How many slots a demand wants, which empty ones begin, and which live ones go."""
