"""The deadlines of a ledger on a real server: when they begin, and the longer one of the nightly tidying."""

import asyncio
import contextlib
from collections.abc import Iterator
from datetime import timedelta

import pytest

from agent.clock import SteppedClock
from agent.ledger import connection_thread, store
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server_address import ServerAddress
from agent.ledger.store import Ledger
from agent.ledger.tables import price_history
from tests.ledger.test_server import address, end_sessions, record, refusal, served
from tests.ledger.values import sample
from tests.support import postgres, programs
from tests.support.standby_names import administered, lacking_replica

__all__ = ["address", "served"]
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")


async def test_the_nightly_tidying_has_a_longer_deadline_than_a_commit(
    served: Ledger, address: ServerAddress, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shared the deadline of commits: a server that took longer once had more to do each night, and never less."""
    async with served.transaction() as tx:
        tx.observe_prices([sample(at=clock.now())])
    clock.advance(timedelta(days=price_history.RAW_DAYS + 1).total_seconds())
    with administered(address) as raw:
        raw.execute(f"SET search_path TO {address.schema}")
        sleep = "BEGIN PERFORM pg_sleep(1); RETURN NULL; END"
        raw.execute(f"CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ {sleep} $$")
        raw.execute("CREATE TRIGGER late AFTER DELETE ON prices EXECUTE FUNCTION late()")
    monkeypatch.setattr(store, "COMMIT_SECONDS", 0.3)
    await served.tidy()
    assert await (await served.reader()).prices() == []
    assert served.is_writable


@contextlib.contextmanager
def slow_starts(address: ServerAddress) -> Iterator[None]:
    """Let each session of the server begin a second late, while the block runs."""
    with administered(address) as raw:
        raw.execute("ALTER SYSTEM SET post_auth_delay = '1s'")
        raw.execute("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            raw.execute("ALTER SYSTEM RESET post_auth_delay")
            raw.execute("SELECT pg_reload_conf()")


async def test_a_commit_has_its_whole_deadline_however_late_its_session_began(
    served: Ledger, address: ServerAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline ended while the session was made, cut nothing, and the commit then waited for a replica forever."""
    await record(served, 1)
    end_sessions(address)
    with pytest.raises(LedgerError):
        await served.replica_danger()
    monkeypatch.setattr(store, "COMMIT_SECONDS", 0.3)
    with lacking_replica(address), slow_starts(address):
        waiting = asyncio.create_task(refusal(served, 2))
        await asyncio.wait({waiting}, timeout=programs.PATIENCE_SECONDS)
        assert waiting.done(), "it waits without a deadline"
        assert (await waiting).code is Code.UNWRITABLE


async def test_a_query_that_its_server_never_answers_ends(
    served: Ledger, address: ServerAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cycle waited for it until the watchdog ended the daemon, and forgot what it owed the ledger."""
    await record(served, 1)
    reader = await served.reader()
    monkeypatch.setattr(connection_thread, "READ_SECONDS", 0.3)
    with administered(address) as raw, raw.transaction():
        raw.execute(f"LOCK TABLE {address.schema}.leases IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(LedgerError) as refused:
            await asyncio.wait_for(reader.leases(), programs.PATIENCE_SECONDS)
        assert refused.value.code is Code.UNWRITABLE
    assert await reader.leases() == []
