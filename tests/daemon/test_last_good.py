"""No broken file, of all that we know, loses the configuration that a daemon runs on."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from agent import systemd
from agent.cli.shared import session
from agent.daemon import Daemon, Parts
from agent.simulator import climate_files
from agent.telemetry import metric_families, metric_updates
from tests.config.test_broken_configurations import BROKEN as FILES
from tests.config.test_tuning import BROKEN as STRATEGIES
from tests.support.configs import GOOD
from tests.support.world import Rehearsed, rehearsed

STRATEGY = 'strategy = "patient"\nheadroom = 0.2\n'
MINE = GOOD.replace('"patient"', '"mine"') + '[strategies]\ndirectory = "mine"\n'


class Reloading:
    """A daemon that reads real files, and the state that may not change under it."""

    def __init__(self, world: Rehearsed, place: Path) -> None:
        self.file = place / "agent.toml"
        self.folder = place / "mine"
        self.folder.mkdir()
        (self.folder / "mine.toml").write_text(STRATEGY)
        self.file.write_text(MINE)
        self.app = world.app
        self._registry: CollectorRegistry = metric_families.registry()
        figures = metric_updates.Metrics(self._registry, ["vast"], ["train"])
        read = lambda: session.parse(self.file, climate_files.names())  # noqa: E731 - what Parts asks for
        self.daemon = Daemon(world.app, Parts(figures, self._registry, systemd.Notifier({}), read))

    def is_good(self) -> bool:
        """Return the metric of the last reload."""
        return self._registry.get_sample_value("gpubid_config_last_reload_successful") == 1.0

    def is_refused(self) -> bool:
        """Reload, and return whether nothing changed and the reload says that it failed."""
        rules, config = self.app.rules, self.app.config
        self.daemon.reload()
        assert self.app.rules is rules
        assert self.app.config is config
        return not self.is_good()

    def is_taken(self) -> bool:
        """Reload, and return whether the files are taken and the reload says so."""
        self.daemon.reload()
        assert [work.strategy for work in self.app.rules.workloads] == ["mine"]
        assert self.app.rules.tuned["mine"].params.model_dump()["headroom"] == 0.2
        return self.is_good()


async def test_every_broken_configuration(tmp_path: Path, subtests: pytest.Subtests) -> None:
    async with rehearsed(tmp_path) as world:
        one = Reloading(world, tmp_path)
        assert one.is_taken()
        for what, text, *_ in FILES:
            with subtests.test(what):
                one.file.write_bytes(text if isinstance(text, bytes) else text.encode())
                assert one.is_refused()
                one.file.write_text(MINE)
                assert one.is_taken()


async def test_every_broken_strategy_file(tmp_path: Path, subtests: pytest.Subtests) -> None:
    async with rehearsed(tmp_path) as world:
        one = Reloading(world, tmp_path)
        assert one.is_taken()
        for what, name, text, *_ in STRATEGIES:
            with subtests.test(what):
                (one.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
                assert one.is_refused()
                (one.folder / name).unlink()
                assert one.is_taken()


def test_there_are_as_many_as_promised() -> None:
    assert len(FILES) + len(STRATEGIES) >= 30


async def test_whatever_reading_stumbles_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with rehearsed(tmp_path) as world:
        one = Reloading(world, tmp_path)
        assert one.is_taken()

        def stumble(*_: object) -> None:
            raise RuntimeError("a defect")

        monkeypatch.setattr(session, "parse", stumble)
        assert one.is_refused()
        monkeypatch.undo()
        assert one.is_taken()


async def test_quiet_hours_count_only_while_the_clock_is_not_doubted(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        one = Reloading(world, tmp_path)
        await world.cycle()
        assert one.daemon._is_time_known()
        world.weather("clock_skew", skew=3600)
        await world.cycle(minutes=5)
        assert not one.daemon._is_time_known()
        assert not one.daemon._dispatcher._is_time_known()
