"""Every commented example of the shipped configuration is right once it is uncommented."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent import config
from agent.domain.work.workload import Workload
from tests.support.configs import STRATEGIES

ROOT = Path(__file__).parents[2]
SHIPPED = (ROOT / "agent.toml").read_text()
EXAMPLE = re.compile(r"^# ((\w+) = .+)$", re.MULTILINE)
WORKLOAD = SHIPPED[SHIPPED.index("[workloads.train]\n") : SHIPPED.index("[workloads.train.env]\n")]
BATCH = {'kind = "service"': 'kind = "batch"'}
RUNPOD = {"[markets.vast]\n": '[markets.runpod]\nsimulated = "calm"\n[markets.vast]\n'}
SCRIPT = {'command = "python train.py --resume latest"\n': ""}
PORT = {"ports = []": "ports = [8000]"}
PREPARE = BATCH | {
    "[workloads.train]\n": (
        '[workloads.prepare]\nimage = "me/prepare"\nmax_price = 0.1\nstrategy = "patient"\nkind = "batch"\n'
        "[workloads.train]\n"
    )
}
NEEDS: Mapping[str, Mapping[str, str]] = {
    "after": PREPARE,
    "at_once": BATCH,
    "demand": {"slots = 1\n": "slots = { least = 0, most = 12 }\n"},
    "done_line": BATCH,
    "fallback_markets": RUNPOD,
    "markets": RUNPOD,
    "network_volume_per_month": {"# network_volume = ": "network_volume = "},
    "onstart_file": SCRIPT,
    "order": BATCH,
    "ready_port": PORT,
    "retries": BATCH,
    "slots": {"slots = 1\n": "", "# demand = ": "demand = "},
    "task_hours": BATCH,
}
"""The changes that an example needs, because its comment says so."""


def loaded(place: Path, example: str, changes: Mapping[str, str]) -> Workload:
    text = SHIPPED
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    assert text.count(f"# {example}\n") == 1
    (place / "agent.toml").write_text(text.replace(f"# {example}\n", f"{example}\n"))
    (place / "start.sh").write_text("#!/bin/sh\n")
    found = config.load(place / "agent.toml", strategies=frozenset(STRATEGIES) | {"hedged"}).workloads
    return next(work for work in found if work.name == "train")


@pytest.mark.parametrize(("example", "key"), EXAMPLE.findall(WORKLOAD))
def test_an_example_of_a_workload_is_right_once_uncommented(tmp_path: Path, example: str, key: str) -> None:
    loaded(tmp_path, example, NEEDS.get(key, {}))


def test_a_key_that_a_newcomer_looks_for_has_an_example() -> None:
    keys = {"windows", "max_running", "demand", "stalled_after", "idle", "live_every", "at_once", "fallback_markets"}
    assert keys <= {key for _, key in EXAMPLE.findall(WORKLOAD)}
