"""The daily deletion of old rows meets a ledger that cannot be written: the daemon goes on."""

import asyncio
from pathlib import Path

import structlog

from agent import systemd
from agent.cli.shared import session
from agent.daemon import Daemon, Parts
from agent.simulator import climate_files
from agent.telemetry import metric_families, metrics
from tests.support import programs
from tests.support.world import Rehearsed, rehearsed


def write_only_if(world: Rehearsed, *, may_write: bool) -> None:
    """Let SQLite refuse every write of the program, as on a disk that turned read-only, or take it again."""
    connection = world.app.ledger._tables._connection
    assert connection is not None
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.execute(f"PRAGMA query_only = {'OFF' if may_write else 'ON'}")


async def test_the_daemon_goes_on_and_deletes_another_night(tmp_path: Path) -> None:
    """It ended, and nobody watched the leases until it was started again."""
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        registry = metric_families.registry()
        figures = metrics.Metrics(registry, ["vast"], ["train"])
        parts = Parts(
            figures,
            registry,
            systemd.Notifier({}),
            lambda: session.parse(tmp_path / "agent.toml", climate_files.names()),
        )
        daemon = Daemon(world.app, parts)
        running = asyncio.ensure_future(daemon.run())
        await programs.until(lambda: world.app.seen is not None, "a first cycle")
        with structlog.testing.capture_logs() as logs:

            def untidied() -> list[str]:
                return [each["code"] for each in logs if each["event"] == "ledger.untidied"]

            write_only_if(world, may_write=False)
            daemon._tidy_soon()
            parts.wake.set()
            await programs.until(untidied, "a refused deletion")
            assert untidied() == ["unwritable"]
            write_only_if(world, may_write=True)
            daemon._tidy_soon()
            parts.wake.set()
            await programs.until(lambda: not daemon._must_tidy, "the next deletion")
        assert not running.done()
        assert untidied() == ["unwritable"]
        daemon.stop()
        await running
