"""The ledger's server has a replica: a real one, which follows, is made to confirm commits, and takes over."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.work.decision import Reason, Release
from agent.ledger import store
from agent.ledger.ledger_errors import LedgerError
from tests.support import engines, postgres
from tests.support.postgres import Server
from tests.support.standby_names import set_names
from tests.support.world import Rehearsed, rehearsed

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    with postgres.serving() as primary, postgres.following(primary, "second") as replica:
        engines.make_role(primary.url)
        yield primary, replica


async def cycle(world: Rehearsed, count: int = 1) -> None:
    """Run cycles as the daemon does, over refusals of the ledger."""
    for _ in range(count):
        with contextlib.suppress(LedgerError):
            await world.app.cycle()
        world.clock.advance(world.config.poll.total_seconds())
        world.market.advance_to(world.clock.time())


def sent_orders(world: Rehearsed) -> set[str]:
    return {order.intent_id for order in world.orders if order.kind.is_paying}


@pytest.mark.only_sqlite
def test_nothing_is_paid_for_until_the_replica_confirms_and_then_it_has_every_order(
    servers: tuple[Server, Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "COMMIT_SECONDS", 2.0)
    # The deadline of a commit needs the ledger's own thread, which the tests' quick loop does not have.
    asyncio.run(story(tmp_path, *servers))


async def story(tmp_path: Path, primary: Server, replica: Server) -> None:
    with engines.played_on(engines.role_url(primary.url)):
        async with rehearsed(tmp_path) as world:
            await world.cycle(minutes=20)
            assert world.orders == []
            (notice,) = (each for each in world.app.notices() if each.about == "ledger")
            assert "second follows asynchronously" in notice.sentence
            assert len(await world.events("alert.replica")) == 1, "one alert while it lasts"

            set_names(primary.url, "second")
            lease = await world.until_running(20)
            assert not [each for each in world.app.notices() if each.about == "ledger"]

            # Asynchronous again: a release still leaves, and nothing is rented in its place.
            set_names(primary.url, "")
            world.clock.advance(60)
            await world.cycle()
            before = sent_orders(world)
            (done,) = await world.app.order([Release(lease, Reason("ordered", "by a test"))], "test")
            assert (done.kind, done.state) == (IntentKind.RELEASE, IntentState.CONFIRMED)
            await world.cycle(minutes=20)
            assert sent_orders(world) == before
            assert len(await world.events("alert.replica")) == 2

            set_names(primary.url, "second")
            world.clock.advance(60)
            await world.until_running(60)
            await failover_while_the_replica_is_cut_off(world, primary, replica)


async def failover_while_the_replica_is_cut_off(world: Rehearsed, primary: Server, replica: Server) -> None:
    """Cut the replica off, so that no commit reaches it, take the running lease away, and let the replica take over."""
    (receiver,) = replica.processes("walreceiver")
    world.is_checked = False
    replica.signal(receiver, signal.SIGSTOP)
    before = sent_orders(world)
    for contract in world.live():
        world.market.destroy(contract.contract_id)
    await cycle(world, 8)
    assert sent_orders(world) == before, "what the replica does not confirm is not paid for"
    primary.kill()
    # A promotion waits for the end of the process that receives.
    replica.signal(receiver, signal.SIGCONT)
    replica.promote()
    kept = set(await on_replica(replica, world))
    assert sent_orders(world) <= kept
    assert len(sent_orders(world)) >= 2


async def on_replica(replica: Server, world: Rehearsed) -> list[str]:
    """Return the orders in the ledger of the replica that were sent at least."""
    with engines.played_on(engines.role_url(replica.url)):
        query = "SELECT intent_id FROM intents WHERE sent_at IS NOT NULL"
        return [row[0] for row in engines.rows(world.config.ledger, query)]
