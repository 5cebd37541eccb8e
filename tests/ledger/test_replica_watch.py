"""What was seen of a server's replicas counts for the server that is written, and for no other."""

import pytest

from agent.clock import SteppedClock
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.server_address import ServerAddress
from agent.ledger.store import Ledger
from agent.observe.replica_watch import ReplicaWatch
from tests.ledger.test_server import address, end_sessions, record, served
from tests.support import postgres

__all__ = ["address", "served"]
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")


async def test_after_a_lapse_nothing_is_paid_for_until_the_replicas_are_looked_at_again(
    served: Ledger, address: ServerAddress, clock: SteppedClock
) -> None:
    """Another server may have taken over within a pass. Its replicas were taken for those of the first for a minute."""
    watch = ReplicaWatch(served, clock)
    assert "not been looked at yet" in watch.why_unpaid
    await watch.look()
    assert not watch.why_unpaid
    end_sessions(address)
    with pytest.raises(LedgerError):
        await record(served, 1)
    await record(served, 2)
    assert served.is_writable
    assert "replicas have not been looked at since" in watch.why_unpaid
    await watch.look()
    assert not watch.why_unpaid
