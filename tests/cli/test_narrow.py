"""No verb that prints a table cuts a figure at 60 columns: every id, time and sum of money is there whole."""

import asyncio
import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from agent.cli.main import app
from agent.cli.rehearsing import event_timeline, rehearsal_report, replay
from agent.cli.shared import session, side_by_side
from agent.cli.watch import explain, fleet_watch, learned, shadow, top_text
from agent.clock import SteppedClock
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import LeaseState
from agent.domain.record.paid_time import Phases
from agent.domain.slot import Slot
from agent.ledger.store import Ledger
from agent.ledger.tables.spend_rows import SpendEntry
from tests.ledger import values
from tests.support.configs import GOOD

WIDTH = 60
NAME = "a-workload-whose-name-is-forty-letters-lo"
HOST = "9876543210987654321098765432"
LEASE = "vast-57070548123456789012345678"
EVIDENCE = f"outbid on {HOST}-of-a-region-far-away-from-here at $1234.567890/h"
HOUR = 3_600_000_000
BIG = 1_234_567.890123


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Write a configuration and a ledger with long ids and a lot of money."""
    file = tmp_path / "agent.toml"
    text = f"{GOOD}\n[ledger]\npath = '{tmp_path / 'ledger.sqlite'}'\n"
    file.write_text(text.replace("workloads.train", f"workloads.{NAME}"))
    asyncio.run(_filled(tmp_path / "ledger.sqlite"))
    return file


async def _filled(path: Path) -> None:
    ledger = await Ledger.open(path, clock=SteppedClock(values.NOW))
    held = values.lease(1, lease_id=LEASE, slot=Slot(NAME, 0), host_id=HOST, owner_id=HOST, ask=UsdPerHour(987_654_321))
    held = msgspec.structs.replace(held, opened_at=values.NOW - timedelta(hours=4), gpu_rate=UsdPerHour(1_234_567_890))
    empty = msgspec.structs.replace(
        held, lease_id=f"{LEASE}9", instance_id="i2", intent_id="n2", state=LeaseState.PAUSED, is_held=True
    )
    async with ledger.transaction() as tx:
        tx.open_lease(held)
        tx.open_lease(empty)
        spent = Usd(1_234_567_890_123)
        tx.add_spend(SpendEntry(LEASE, NAME, "vast", Tenure.INTERRUPTIBLE, values.NOW.date(), gpu=spent))
        tx.add_phases(Tenure.INTERRUPTIBLE, Phases(LEASE, values.NOW.date(), useful=3 * HOUR))
        tx.append_event(
            Event(
                at=values.NOW,
                kind=EventKind.LEASE_INTERRUPTED,
                workload=NAME,
                slot=0,
                lease_id=LEASE,
                market="vast",
                host_id=HOST,
                cause=Cause.OUTBID,
                evidence=EVIDENCE,
                amount=spent,
            )
        )
    await ledger.close()


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Watch a terminal of 60 columns; return the cells that are added to tables."""
    added: list[str] = []
    add = session.add

    def watched(made: Any, *row: str) -> None:
        added.extend(row)
        add(made, *row)

    monkeypatch.setattr(session, "add", watched)
    monkeypatch.setattr(session, "is_terminal", lambda *_: True)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    return added


def assert_whole(cells: list[str], out: str) -> None:
    """Check that each cell is printed in one piece, and of text that may fold each word."""
    assert cells
    broken = [cell for cell in cells if cell not in out and any(word not in out for word in cell.split())]
    figures = [cell for cell in cells if len(cell.split()) == 1 and cell not in out]
    assert broken + figures == []
    assert "…" not in out


VERBS = (
    "fleet",
    "status",
    *(f"spend --by {by}" for by in ("day", "workload", "lease", "cause")),
    *(f"savings --by {by}" for by in ("month", "lease")),
    "ledger events",
    "strategy list",
)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_cuts_nothing_at_sixty_columns(config: Path, cells: list[str], verb: str) -> None:
    ran = CliRunner().invoke(app, [*verb.split(), "--config", str(config)])
    assert ran.exit_code in {0, 1}, ran.output
    assert_whole(cells, ran.stdout)
    if verb == "ledger events":
        assert all(word in ran.stdout for word in (*EVIDENCE.split(), HOST, "$1,234,567.8901"))


TERMS = [{"name": "expected interruptions of an hour", "figure": BIG, "unit": "dollars"}] * 2
FIGURES = {
    "dollars": BIG, "paid_hours": BIG, "useful_hours": BIG, "lost_hours": BIG, "interruptions": 123_456,
    "rents": 123_456,
    "dollars_per_useful_hour": BIG,
}  # fmt: skip
SLOT = {
    "slot": f"{NAME}/0", "is_configured": False, "state": "interrupted", "market": "vast", "host": HOST, "gpus": 8,
    "gpu": "RTX PRO 6000 WS", "dollars_per_hour": BIG, "bid": BIG, "floor": BIG, "ask": BIG, "useful_share": 0.5,
    "decision": {"kind": "hold", "code": "deadline_on_demand_fallback"},
}  # fmt: skip
MONEY = {
    "today_dollars": BIG, "day_cap_dollars": BIG, "month_dollars": BIG, "month_cap_dollars": BIG,
    "dollars_per_hour": BIG, "hour_cap_dollars": BIG, "runway_hours": 3.0, "runway_ends": "day cap",
}  # fmt: skip
FLEET = {
    "as_of": "2026-11-20T12:00:00.123456+00:00", "running": 1, "wanted": 1, "alerts": [], "notes": [],
    "slots": [SLOT], "money": MONEY,
}  # fmt: skip
POOL = {
    "pool": f"vast/{HOST}/RTX 4090", "is_there": True, "since": "2026-11-20T12:00:00+00:00", "is_begun": False,
    "looks": 123_456, "turns_per_hour": BIG, "there": {"hours": [1e6], "ends": [1e6]},
    "away": {"hours": [1e6], "ends": [1e6]}, "loss_factor": BIG, "return_factor": BIG,
}  # fmt: skip
OWN = {
    "host": f"vast/{HOST}", "owner": HOST, "running_hours": BIG, "losses_to_market": BIG, "host_failures": BIG,
    "losses_per_hour": BIG, "start_success": 0.5, "loaded_mbps": BIG,
}  # fmt: skip
PAPER = {
    "workload": NAME, "strategy": NAME, "since": "2026-11-20T12:00:00+00:00", "until": "2026-11-20T12:00:00+00:00",
    "paper": FIGURES, "live": FIGURES, "actual": FIGURES, "replayed": FIGURES, "plans": 1, "last": [],
}  # fmt: skip
OPTION = {"name": "move to another host", "dollars": BIG, "terms": TERMS}
CANDIDATE = {
    "gpu": "RTX PRO 6000 WS", "host": HOST, "tenure": "interruptible", "dollars_per_hour": BIG, "reliability": 0.99999,
    "terms": TERMS,
}  # fmt: skip
PRINTED: dict[str, Callable[[], None]] = {
    "fleet --watch": lambda: fleet_watch._print_table(FLEET),
    "learned pools": lambda: learned._show_pools([POOL]),
    "learned hosts": lambda: learned._show_hosts([OWN]),
    "shadow": lambda: shadow._print({"shadows": [PAPER], "rules": []}),
    "replay": lambda: replay._print({"workloads": [PAPER], "strategy": NAME, "looks": 1, "rules": []}),
    "explain options": lambda: side_by_side.show(explain._options([OPTION] * 4)),
    "explain candidates": lambda: side_by_side.show(explain._candidates([CANDIDATE] * 4)),
}


@pytest.mark.parametrize("name", PRINTED)
def test_a_table_cuts_nothing_at_sixty_columns(cells: list[str], capsys: pytest.CaptureFixture[str], name: str) -> None:
    PRINTED[name]()
    assert_whole(cells, capsys.readouterr().out)


@pytest.mark.parametrize(("width", "blocks"), [(60, 3), (80, 2), (160, 1)])
def test_candidates_stand_side_by_side_as_far_as_there_is_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int, blocks: int
) -> None:
    monkeypatch.setattr(session, "is_terminal", lambda *_: True)
    monkeypatch.setenv("COLUMNS", str(width))
    hosts = [f"h{number}" for number in range(5)]
    term = {"name": "gpu", "figure": 1.5, "unit": "$"}
    rows = [CANDIDATE | {"host": host, "dollars_per_hour": 0.25, "terms": [term]} for host in hosts]
    side_by_side.show(explain._candidates(rows))
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("tenure") for line in lines) == blocks
    assert [word for line in lines if line.startswith("term ") for word in line.split() if word in hosts] == hosts
    assert all(len(line) <= width for line in lines)


def test_rows_of_a_wide_table_are_columns_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "is_terminal", lambda *_: True)
    monkeypatch.setenv("COLUMNS", "50")
    rows = session.table("day", "spent in dollars", "wasted in dollars", "nothing")
    for day in ("07-27", "07-28", "all"):
        session.add(rows, day, "$1.0000", "$0.0000", "")
    side_by_side.show_rows(rows)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["day", "07-27", "07-28", "all"],
        ["spent", "in", "dollars", *["$1.0000"] * 3],
        ["wasted", "in", "dollars", *["$0.0000"] * 3],
    ]
    monkeypatch.setenv("COLUMNS", "120")
    side_by_side.show_rows(rows)
    assert capsys.readouterr().out.splitlines()[0].split()[0:2] == ["day", "spent"]


TEXT = "the inbox of the market says outbid: floor $0.54"
EVENTS = (
    ("07-27 13:19", "train/0", "interrupted", "displaced", "$0.1947/h", TEXT),
    ("07-27 13:20", "train/0", "released", "", "", "moved"),
)
LINED = {
    56: [
        "at           slot     what         price",
        "  cause; why",
        "07-27 13:19  train/0  interrupted  $0.1947/h",
        "  cause displaced; the inbox of the market says outbid:",
        "  floor $0.54",
        "07-27 13:20  train/0  released",
        "  moved",
    ],
    80: [
        "at           slot     what         cause      price",
        "  why",
        "07-27 13:19  train/0  interrupted  displaced  $0.1947/h",
        "  the inbox of the market says outbid: floor $0.54",
        "07-27 13:20  train/0  released",
        "  moved",
    ],
}


@pytest.mark.parametrize("width", LINED)
def test_a_row_with_a_long_text_has_two_lines_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setattr(session, "is_terminal", lambda *_: True)
    rows = session.table("at", "slot", "what", "cause", "price", "why", folded="why")
    for event in EVENTS:
        session.add(rows, *event)
    monkeypatch.setenv("COLUMNS", str(width))
    side_by_side.show_two_lined(rows, ("why", "cause"))
    assert capsys.readouterr().out.splitlines() == LINED[width]
    monkeypatch.setenv("COLUMNS", "120")
    side_by_side.show_two_lined(rows, ("why", "cause"))
    assert len(capsys.readouterr().out.splitlines()) == len(EVENTS) + 1, "a wide terminal has one line a row"


def test_the_name_of_a_pool_is_above_its_figures_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "is_terminal", lambda *_: True)
    monkeypatch.setenv("COLUMNS", "80")
    counts = {"hours": [1234.0], "ends": [321.0]}
    row = POOL | {"pool": "RTX 4090 x1 up to $0.4500/h #4db562", "looks": 482, "turns_per_hour": 0.1}
    learned._show_pools([row | {"there": counts, "away": counts, "loss_factor": 0.67, "return_factor": 3.07}] * 2)
    lines = capsys.readouterr().out.splitlines()
    named = "RTX 4090 x1 up to $0.4500/h #4db562; since 11-20 12:00 or before"
    figures = "  there     482     0.100    0.260 (1234 h)  0.260 (1234 h)  0.67      3.07"
    head = ["pool; since", "  capacity  looked  turns/h  lost/h seen     back/h seen     x losses  x returns"]
    assert lines == [*head, named, figures, named, figures]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("width", [WIDTH, 80, 140])
def test_a_rehearsal_cuts_nothing_of_its_bill_and_its_timeline(width: int) -> None:
    spend = [
        SimpleNamespace(
            key=LEASE,
            gpu=Usd(1_234_567_890_123),
            disk=Usd(1_234_567_890_123),
            traffic=Usd(1_234_567_890_123),
            amount=Usd(3_703_703_670_369),
            running_seconds=3.6e9,
        )
    ]
    told: Any = SimpleNamespace(leases=[values.lease(1, lease_id=LEASE)], spend=spend)
    row = event_timeline.Row(values.NOW, "train/0", "OUTBID", "red", f"vast/{HOST}", "$1234.567890", "why it moved")
    console = Console(width=width, file=io.StringIO())
    for table in (rehearsal_report._bill(told), rehearsal_report._timeline([row])):
        console.print(rehearsal_report.fitted(table, width))
    out = console.file.getvalue()  # type: ignore[attr-defined]
    for whole in ("$1,234,567.8901", "$3,703,703.6704", "1000000.00 h", f"vast/{HOST}", "$1234.567890", "20 12:00:00"):
        assert whole in out, out


TRAIL = [{"floor": BIG, "bid": BIG, "ask": BIG}] * 8


@pytest.mark.parametrize(
    ("width", "dropped"),
    [(60, {"useful", "floor", "bid", "next", "host"}), (125, {"useful", "floor", "bid"}), (200, set())],
)
def test_top_drops_columns_and_cuts_no_id_and_no_figure(width: int, dropped: set[str]) -> None:
    columns, (row,) = top_text.table({"slots": [SLOT | {"prices": TRAIL}]}, width)
    assert {name for name, _ in columns} == set(top_text.COLUMNS) - dropped
    assert all(len(cell) < room for (name, room), cell in zip(columns, row, strict=True) if name != "next")
    assert f"{NAME}/0?" in row
    assert f"{BIG:.4f}" in row
    assert sum(room for _, room in columns) <= max(width, 75)


def test_top_shows_the_decision_as_far_as_there_is_room() -> None:
    short = SLOT | {"slot": "train/0", "host": "77", "dollars_per_hour": 0.1, "bid": 0.1, "prices": TRAIL}
    rooms = [dict(top_text.table({"slots": [short]}, width)[0])["next"] for width in (80, 86, 200)]
    assert top_text.NEXT + 1 <= rooms[0] < rooms[1] < rooms[2] == len("hold deadline_on_demand_fallback") + 1
