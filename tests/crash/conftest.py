"""The tests of this folder run on either engine of the ledger."""

from tests.support.engines import database, engine

__all__ = ["database", "engine"]
