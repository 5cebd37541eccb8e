"""What fails beside a cycle does not end the daemon: the deletion of old rows, and metrics.

Its notifications go out all the same, also where a cycle fails or the daemon ends for good.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog

from agent import daemon as daemon_module
from agent import systemd
from agent.cli.shared import session
from agent.config.notify_settings import Notify, Webhook
from agent.daemon import Daemon, Parts
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.ledger.ledger_errors import Code, LedgerError
from agent.notify import channels
from agent.pass_metrics import Figures
from agent.simulator import climate_files
from agent.telemetry import metric_families, metric_updates
from tests.notify.receiver import Receiver
from tests.support import engines, postgres, programs
from tests.support.engines import database
from tests.support.world import Rehearsed, rehearsed

__all__ = ["database"]


def write_only_if(world: Rehearsed, *, may_write: bool) -> None:
    """Let SQLite refuse every write of the program, as on a disk that turned read-only, or take it again."""
    connection = world.app.ledger._tables._connection
    assert connection is not None
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.execute(f"PRAGMA query_only = {'OFF' if may_write else 'ON'}")


def daemon_of(world: Rehearsed) -> tuple[Daemon, Parts]:
    """Return a daemon over a world that does not run yet, and its parts."""
    registry = metric_families.registry()
    read = lambda: session.parse(world.config.file, climate_files.names())  # noqa: E731 - what Parts asks for
    parts = Parts(metric_updates.Metrics(registry, ["vast"], ["train"]), registry, systemd.Notifier({}), read)
    return Daemon(world.app, parts), parts


def notify(daemon: Daemon, world: Rehearsed, url: str) -> None:
    """Let a daemon send its notifications to this address."""
    settings = Notify(webhook=Webhook(url=url))
    daemon._dispatcher.use(settings, channels.channels(settings, str, world.clock))


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    server = Receiver()
    await server.start()
    yield server
    await server.close()


@contextlib.asynccontextmanager
async def running(world: Rehearsed) -> AsyncIterator[tuple[Daemon, asyncio.Event]]:
    """Run the daemon over a world, and insist that it ends only when it is told to."""
    daemon, parts = daemon_of(world)
    ends = asyncio.ensure_future(daemon.run())
    await programs.until(lambda: world.app.seen is not None, "a first cycle")
    yield daemon, parts.wake
    assert not ends.done()
    daemon.stop()
    await ends


async def test_the_daemon_goes_on_and_deletes_another_night(tmp_path: Path) -> None:
    """It ended, and nobody watched the leases until it was started again."""
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        with structlog.testing.capture_logs() as logs:

            def untidied() -> list[str]:
                return [each["code"] for each in logs if each["event"] == "ledger.untidied"]

            async with running(world) as (daemon, wake):
                write_only_if(world, may_write=False)
                daemon._tidy_soon()
                wake.set()
                await programs.until(untidied, "a refused deletion")
                write_only_if(world, may_write=True)
                daemon._tidy_soon()
                wake.set()
                await programs.until(lambda: not daemon._must_tidy, "the next deletion")
        assert untidied() == ["unwritable"]


async def test_the_daemon_goes_on_where_its_metrics_stumble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        with structlog.testing.capture_logs() as logs:

            def stumbled() -> int:
                return sum(each["event"] == "metrics.failed" for each in logs)

            def stumble(*_: object) -> None:
                raise RuntimeError("a defect")

            monkeypatch.setattr(Figures, "see", stumble)
            async with running(world) as (_, wake):
                await programs.until(lambda: stumbled() == 1, "a defect")
                wake.set()
                await programs.until(lambda: stumbled() == 2, "the next cycle")
        assert stumbled() >= 2


async def test_a_start_shows_neither_a_full_disk_nor_refused_files_before_its_first_cycle(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        registry = metric_families.registry()
        read = lambda: session.parse(world.config.file, climate_files.names())  # noqa: E731 - what Parts asks for
        parts = Parts(metric_updates.Metrics(registry, ["vast"], ["train"]), registry, systemd.Notifier({}), read)
        daemon = Daemon(world.app, parts)
        serve = daemon._server.start
        shown: list[float | None] = []

        async def served() -> tuple[str, int]:
            names = "ledger_disk_free_bytes", "ledger_writable", "config_last_reload_successful", "poll_seconds"
            shown.extend(registry.get_sample_value(f"gpubid_{name}") for name in names)
            return await serve()

        daemon._server.start = served  # type: ignore[method-assign]
        daemon.stop()
        await daemon.run()
    free, *others = shown
    assert free is not None
    assert free > 2**20
    assert others == [1, 1, world.config.poll.total_seconds()]


async def test_a_ledger_that_cannot_be_written_for_long_does_not_end_the_daemon(tmp_path: Path) -> None:
    """The watchdog ended it after six minutes, and with it every release and cap; a start needs the same ledger."""
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        with structlog.testing.capture_logs() as logs:

            def failed() -> int:
                return sum(each["event"] == "cycle.failed" and each["code"] == "unwritable" for each in logs)

            async with running(world) as (daemon, wake):
                write_only_if(world, may_write=False)
                for number in range(1, 6):
                    world.clock.advance(200.0)
                    wake.set()
                    await programs.until(lambda number=number: failed() >= number, "a refused pass")  # type: ignore[misc]
                assert daemon._health.is_alive
                assert not daemon._health.is_ready
                assert daemon._health.troubled() == ("cycle ended early: see cycle.failed in the log",)
                write_only_if(world, may_write=True)
                world.clock.advance(30.0)
                wake.set()
                await programs.until(lambda: daemon._health.is_ready, "a pass that is written")


@pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")
async def test_a_lead_that_cannot_be_shown_for_long_does_not_end_the_daemon(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watchdog ended it after five minutes without the server, and with it a kill that was not written yet."""
    from agent.ledger.server import leader_row, leadership

    monkeypatch.setattr(leadership, "BEAT_SECONDS", threading.TIMEOUT_MAX)
    with engines.played_on(database):
        async with rehearsed(tmp_path) as world:
            await world.until_running()
            lead = world.app.ledger.place.lead  # type: ignore[attr-defined]
            awake = lead._boottime
            with structlog.testing.capture_logs() as logs:

                def failed() -> int:
                    return sum(each["event"] == "cycle.failed" and each["code"] == "unled" for each in logs)

                async with running(world) as (daemon, wake):
                    lead._boottime = lambda: awake() + leader_row.SHOWN_SECONDS
                    for number in range(1, 6):
                        world.clock.advance(600.0)
                        wake.set()
                        await programs.until(lambda number=number: failed() >= number, "a refused pass")  # type: ignore[misc]
                    assert daemon._health.is_alive
                    assert not daemon._health.is_ready
                    lead._boottime = awake
                    lead.beat()
                    world.clock.advance(30.0)
                    wake.set()
                    await programs.until(lambda: daemon._health.is_ready, "a pass under a lead that is shown")


async def test_notifications_go_out_while_cycles_fail(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect in each cycle silenced every event that orders and other parts recorded beside the cycles."""
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        async with running(world) as (daemon, wake):
            notify(daemon, world, receiver.url)

            async def fail() -> None:
                raise RuntimeError("a defect")

            monkeypatch.setattr(world.app, "cycle", fail)
            async with world.app.ledger.transaction() as tx:
                tx.append_event(Event(at=world.clock.now(), kind=EventKind.ALERT_MARKET_FAULT, market="vast"))
            wake.set()
            await programs.until(lambda: receiver.got, "the notification")
    assert receiver.titles == ["gpubid: alert.market_fault"]


async def refused(world: Rehearsed, daemon: Daemon, wake: asyncio.Event) -> None:
    """Run the daemon until the key is another account's, which ends it."""
    ends = asyncio.ensure_future(daemon.run())
    await programs.until(lambda: world.app.seen is not None and daemon._dispatcher.is_begun, "a first cycle")
    world.weather("wrong_account")

    def is_over() -> bool:
        world.clock.advance(15.0)
        wake.set()
        return ends.done()

    await programs.until(is_over, "the end of the daemon")
    with pytest.raises(LedgerError) as error:
        await ends
    assert error.value.code is Code.WRONG_ACCOUNT


async def test_a_daemon_that_ends_for_good_sends_its_last_event(tmp_path: Path, receiver: Receiver) -> None:
    """It ended with 2, which no service manager restarts, its leases went on billing, and nobody was told."""
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        daemon, parts = daemon_of(world)
        notify(daemon, world, receiver.url)
        await refused(world, daemon, parts.wake)
    assert "gpubid: daemon.refused" in receiver.titles


async def test_a_channel_that_hangs_delays_the_end_only_for_seconds(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_module, "LAST_ROUND_SECONDS", 0.2)
    monkeypatch.setattr(channels, "DEADLINE_SECONDS", 2 * programs.PATIENCE_SECONDS)
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        daemon, parts = daemon_of(world)
        notify(daemon, world, receiver.url)
        receiver.may_answer.clear()
        await refused(world, daemon, parts.wake)
        receiver.may_answer.set()
    assert receiver.got
