"""Hosts of finished tasks that go on with another slot."""
