"""The most time that a workload or a lease may run: its forms, and what it may not say."""

import datetime as dt
from pathlib import Path

import pytest

from agent import config
from agent.config.problems import ConfigError
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import Workload
from tests.support.configs import STRATEGIES, added

LOSABLE = "may_lose_disk = true"
TWELVE_HOURS = dt.timedelta(hours=12)


def loaded(tmp_path: Path, *lines: str) -> Workload:
    path = tmp_path / "agent.toml"
    path.write_text(added(*lines))
    return config.load(path, strategies=STRATEGIES).workloads[0]


def test_without_the_key_nothing_is_limited(tmp_path: Path) -> None:
    assert loaded(tmp_path).max_running == ()


def test_a_time_pauses_the_workload(tmp_path: Path) -> None:
    limit = RunningLimit(TWELVE_HOURS, LimitOf.WORKLOAD, AtLimit.PAUSE, dt.timedelta(minutes=15))
    assert loaded(tmp_path, 'max_running = "12h"').max_running == (limit,)


def test_a_table_becomes_what_it_says(tmp_path: Path) -> None:
    table = 'max_running = { for = "1d", of = "lease", then = "move", tell_before = "1h" }'
    limit = RunningLimit(dt.timedelta(days=1), LimitOf.LEASE, AtLimit.MOVE, dt.timedelta(hours=1))
    assert loaded(tmp_path, LOSABLE, table).max_running == (limit,)


def test_both_may_be_limited(tmp_path: Path) -> None:
    lines = 'max_running = ["12h", { for = "3h", of = "lease" }]'
    assert [each.of for each in loaded(tmp_path, lines).max_running] == [LimitOf.WORKLOAD, LimitOf.LEASE]


@pytest.mark.parametrize("then", ["done", "release"])
def test_where_the_disk_is_no_checkpoint_it_may_be_given_up(tmp_path: Path, then: str) -> None:
    remote = 'checkpoint = { at = "remote" }'
    assert loaded(tmp_path, f'max_running = {{ for = "12h", then = "{then}" }}', remote).max_running[0].then == then


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("max_running = 12", 'must be a duration in quotes or a table; write for example max_running = "12h"'),
        ('max_running = "12"', 'must be a duration in quotes, not "12"'),
        ('max_running = "30s"', 'write for example for = "12h"'),
        ('max_running = { for = "12h", then = "stop" }', 'must be "pause", "release", "done" or "move"'),
        ('max_running = { for = "12h", whose = "lease" }', "is not a key here"),
        ("max_running = {}", "is missing"),
        ('max_running = { for = "12h", then = "move" }', 'a whole workload cannot move; write of = "lease"'),
        ('max_running = ["12h", "3h"]', "max_running counts the workload twice"),
        ('max_running = { for = "12h", then = "release" }', 'write then = "pause", or may_lose_disk = true'),
        ('max_running = { for = "12h", then = "done" }', 'write then = "pause", or may_lose_disk = true'),
        ('max_running = { for = "1h", of = "lease", then = "move" }', 'write then = "pause", or may_lose_disk = true'),
    ],
)
def test_what_it_may_not_say(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, line)
    assert told in str(error.value)
