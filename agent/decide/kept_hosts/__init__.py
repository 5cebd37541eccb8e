"""Hosts of finished tasks that go on with another task of their array."""
