"""The registration of public ssh keys with running instances."""
