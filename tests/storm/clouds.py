"""The storm over dstack: its configuration, orders by hand, and a person who looks at the consoles of the clouds.

No daemon lives long enough to watch every end, so leases count on until that person says that nothing is left. The
ledger may count that much more than was charged, and no more.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.programs import LIVE

MARKET = "dstack"
CONFIG = LIVE.replace(
    "[markets.vast]", '[markets.dstack]\nfleet = "gpubid"\nbackends = ["aws", "lambda", "cloudrift", "vultr"]'
).replace("vast_api_key", "dstack_api_key")
ROOM = (
    ("max_instances = 8", "max_instances = 40"),
    ("max_fleet_per_hour = 3.00", "max_fleet_per_hour = 20.00"),
    ("max_per_day = 12.00", "max_per_day = 200.00"),
    ('image = "alpine:latest"', 'image = "alpine:latest"\ncommand = "sleep infinity"'),
)
"""Leases that wait for a person's word count under the limits."""
APPLY, STOP = "/api/project/main/runs/apply", "/api/project/main/runs/stop"
HAND = {
    "type": "task",
    "image": "ubuntu:22.04",
    "commands": ["sleep infinity"],
    "fleets": ["hand"],
    "backends": ["vultr"],
    "spot_policy": "on-demand",
}
"""A run in a fleet of its own, at a cloud that is too dear for the workload."""
BY_HAND = {"plan": {"run_spec": {"run_name": "by-hand", "configuration": HAND}}, "force": False}
FLEETS = {"market": MARKET, "names": ["gpubid", "hand"]}
_FINISHED = frozenset({"terminated", "failed", "done"})
_QUESTIONS = ("/get", "/list", "/get_plan", "/poll")
_COUNTED = "SELECT instance_id, max(accrued_until) FROM leases WHERE market = ? GROUP BY instance_id"


def is_question(path: str) -> bool:
    """Return whether a POST only asks."""
    return path.rstrip("/").endswith(_QUESTIONS)


def running(row: Mapping[str, Any]) -> bool:
    """Return whether a run has not begun to end."""
    return row["end_cause"] is None


def given_up(rows: Sequence[Mapping[str, Any]], fleet: Mapping[str, Any]) -> Iterator[str]:
    """Yield the leases whose run and machine are over, as a person sees in the consoles."""
    over = {
        row["id"]
        for row in rows
        if row["ended"] is not None and row["status"] in _FINISHED and row["machine"] in {None, "terminated"}
    }
    yield from (str(lease["lease"]) for lease in fleet["leases"] if lease["instance"] in over)


def beyond(rows: Sequence[Mapping[str, Any]], ledger: Path) -> float:
    """Return the dollars by which leases may count for the time after their machines were over."""
    with contextlib.closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as raw:
        counted = dict(raw.execute(_COUNTED, (MARKET,)))
    ended = [row for row in rows if row["ended"] is not None and row["id"] in counted]
    return float(sum(max(counted[row["id"]] / 1e6 - row["ended"], 0.0) / 3600 * row["price"] for row in ended))
