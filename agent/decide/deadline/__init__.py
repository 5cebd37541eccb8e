"""Work that must be done by a time: how far it is, how capacity comes and goes, when to buy on demand."""
