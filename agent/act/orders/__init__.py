"""What a person orders, carried out."""
