"""Orders of a person and notices for a person: holds, a kill, a reload, and unaccounted costs."""
