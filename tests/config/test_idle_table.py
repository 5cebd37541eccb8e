"""The keys of idle GPUs, stalled work and services that are probed on: their reading, and what they may not say."""

import datetime as dt
from pathlib import Path

import pytest

from agent import config
from agent.config.problems import ConfigError
from agent.domain.work.idle_rule import IdleRule, OnIdle
from agent.domain.work.ready_sign import Liveness
from agent.domain.work.stall import OnStall, StallRule
from agent.domain.work.workload import Workload
from tests.support.configs import STRATEGIES, added

LOSABLE = "may_lose_disk = true"


def loaded(tmp_path: Path, *lines: str) -> Workload:
    path = tmp_path / "agent.toml"
    path.write_text(added(*lines))
    return config.load(path, strategies=STRATEGIES).workloads[0]


def test_without_the_table_idle_gpus_warn(tmp_path: Path) -> None:
    assert loaded(tmp_path).idle == IdleRule(5.0, dt.timedelta(minutes=15), OnIdle.WARN)


def test_the_table_becomes_what_it_says(tmp_path: Path) -> None:
    work = loaded(tmp_path, LOSABLE, 'idle = { below = "2.5%", for = "1h", then = "release" }')
    assert work.idle == IdleRule(2.5, dt.timedelta(hours=1), OnIdle.RELEASE)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('idle = { below = "0%" }', 'must be a share above 0 and up to 100 per cent; write for example below = "5%"'),
        ('idle = { below = "101%" }', 'must be a share above 0 and up to 100 per cent; write for example below = "5%"'),
        ("idle = { below = 5 }", 'must be text in quotes, not 5; write for example below = "5%"'),
        ('idle = { lasts = "1h" }', "is not a key here"),
        ('idle = { for = "4m" }', 'write for example for = "30m"'),
        ('idle = { then = "release" }', 'write then = "pause", or may_lose_disk = true'),
        ('live_every = "2h"', 'write for example live_every = "30s"'),
        ('live_within = "0s"', 'write for example live_within = "5s"'),
        ("live_failures = 0", "write for example live_failures = 2"),
    ],
)
def test_what_it_may_not_say(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, line)
    assert told in str(error.value)


def test_a_service_is_probed_on_unless_told_otherwise(tmp_path: Path) -> None:
    port = ("ports = [8000]", 'ready = "port"', "ready_port = 8000")
    assert loaded(tmp_path, *port).ready.live == Liveness(dt.timedelta(seconds=30), dt.timedelta(seconds=5), 2)
    assert loaded(tmp_path, *port).ready.is_watched
    assert not loaded(tmp_path, *port, 'live_every = "off"').ready.is_watched
    assert not loaded(tmp_path).ready.is_watched


def test_nothing_is_stalled_without_the_key_and_all_measures_follow_with_it(tmp_path: Path) -> None:
    assert not loaded(tmp_path).stalled.is_asked
    after = dt.timedelta(minutes=45)
    assert loaded(tmp_path, 'stalled_after = "45m"').stalled == StallRule(after, tuple(OnStall))
    work = loaded(tmp_path, 'stalled_after = "45m"', 'stalled_then = ["restart", "hold"]')
    assert work.stalled == StallRule(after, (OnStall.RESTART, OnStall.HOLD))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('stalled_after = "4m"', "stalled_after"),
        ("stalled_then = []", "stalled_then"),
        ('stalled_then = ["warn", "warn"]', "a measure is named twice; keep one"),
        ('stalled_then = ["hold", "move"]', "nothing follows a hold, which waits for a person; remove move"),
    ],
)
def test_a_bad_order_of_measures_is_refused(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, line)
    assert told in str(refused.value)
