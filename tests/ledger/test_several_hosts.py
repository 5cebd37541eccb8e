"""Several hosts in the address: two real servers, of which one is a replica, and then the only one."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.ledger import storage
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server_address import ServerAddress
from agent.ledger.store import Ledger
from tests.ledger.values import intent
from tests.support import engines, postgres
from tests.support.postgres import Server
from tests.support.standby_names import set_names

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    with postgres.serving() as primary, postgres.following(primary, "second") as replica:
        engines.make_role(primary.url)
        set_names(primary.url, "second")
        yield primary, replica


def address(*servers: Server) -> ServerAddress:
    """Return the address of a ledger on whichever of these servers can be written."""
    hosts = ",".join(f"127.0.0.1:{each.port}" for each in servers)
    user = f"{engines.ROLE}:{postgres.PASSWORD}"
    return ServerAddress(f"postgresql://{user}@{hosts}/postgres?target_session_attrs=read-write", "ledger")


async def record(ledger: Ledger, number: int) -> None:
    async with ledger.transaction() as tx:
        tx.record_intent(intent(number))


async def recorded(ledger: Ledger, first: int) -> int:
    """Record one intent, with another number after each refusal; return the number that was recorded."""
    for number in range(first, first + 400):
        try:
            await record(ledger, number)
        except LedgerError as error:
            assert error.code in {Code.UNWRITABLE, Code.CONFLICT}, error  # noqa: PT017 - most attempts may fail
            await asyncio.sleep(0.05)
        else:
            return number
    raise AssertionError("it never came back")


async def test_the_ledger_is_written_and_read_where_it_can_be_written_and_follows_a_failover(
    servers: tuple[Server, Server], path: Path, clock: SteppedClock
) -> None:
    primary, replica = servers
    ledger = await Ledger.open(storage.of(path, address(replica, primary)), clock=clock)
    await record(ledger, 1)
    reader = await ledger.reader()
    assert [each.intent_id for each in await reader.intents()] == ["n1"], "read where it was just written"
    assert await ledger.replica_danger() == ""

    primary.kill()
    with pytest.raises(LedgerError) as refused:
        await record(ledger, 2)
    assert refused.value.code is Code.UNWRITABLE
    replica.promote()
    number = await recorded(ledger, 3)
    assert {each.intent_id for each in ledger.recollection().intents} == {"n1", f"n{number}"}
    with psycopg.connect(replica.url) as raw:
        rows = raw.execute("SELECT intent_id FROM ledger.intents ORDER BY 1").fetchall()
    assert {each for (each,) in rows} == {"n1", f"n{number}"}
    assert await ledger.replica_danger() == "", "nothing follows the new primary"
    await ledger.close()


async def test_a_replica_alone_is_not_written(servers: tuple[Server, Server], path: Path, clock: SteppedClock) -> None:
    with pytest.raises(LedgerError) as refused:
        await Ledger.open(storage.of(path, address(servers[1])), clock=clock)
    assert refused.value.code is Code.UNREACHABLE
