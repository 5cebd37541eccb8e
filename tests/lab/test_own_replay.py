"""A strategy on recorded time: hand-computed counterfactuals, no look ahead, and the verb."""

import json
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.clock import SteppedClock
from agent.decide.limits.limits import Limits
from agent.decide.pricing import useful_hour
from agent.decide.strategy import Tuned
from agent.domain.market.offer import Offer
from agent.domain.market.price import PriceSample
from agent.domain.money import per_hour
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.lab.engine import own_replay
from agent.lab.traces import ledger_history
from agent.ledger.reader import open_reader
from agent.ledger.store import Ledger
from strategies.ondemand import OnDemand, OnDemandParams
from strategies.patient import Patient, PatientParams
from tests.support import builders
from tests.support.builders import NOW

MINUTE = timedelta(minutes=1)
WORK = builders.workload(checkpoint=Checkpoint(15 * MINUTE, MINUTE, 0.0, CheckpointPlace.REMOTE))
WAITS = Tuned("patient", Patient(), PatientParams(may_raise=False, may_move=False, on_demand_if_cheaper=False), "p")
ON_DEMAND = Tuned("ondemand", OnDemand(), OnDemandParams(), "o")
START = useful_hour.loading_hours(WORK.image_gb, 800.0) * 60
"""Minutes from a rent to running: the image over the host's line."""
DISK, IMAGE = 0.15 * 20 / 720, WORK.image_gb * 0.005
CONFIG = """
[markets.vast]
simulated = "calm"
[limits]
max_price_per_instance_hour = 2.0
max_fleet_per_hour = 3.0
max_per_day = 50
max_per_month = 500
max_instances = 4
[workloads.train]
image = "ubuntu:22.04"
gpu = ["RTX 4090"]
max_price = 1.0
strategy = "patient"
"""


def look(minutes: float, floor: str, ask: str = "3.00") -> list[Offer]:
    return [builders.offer(1, floor=per_hour(floor), ask=per_hour(ask), seen_at=NOW + minutes * MINUTE)]


LOOKS = [look(0, "0.20"), look(60, "0.20"), look(120, "0.30"), look(180, "0.20"), look(240, "0.20")]


async def written(path: Path, looks: Sequence[list[Offer]], *, with_looks: bool = True) -> Path:
    """Write these searches to a ledger, as cycles would; an older release kept their prices alone."""
    ledger = await Ledger.open(path, clock=SteppedClock(NOW))
    for offers in looks:
        async with ledger.transaction() as tx:
            tx.observe_prices(
                PriceSample(row.seen_at, row.market, row.host_id, row.gpu, row.gpus, row.ask, row.floor)
                for row in offers
            )
            tx.observe_offers(offers if with_looks else [])
    await ledger.close()
    return path


async def read(path: Path, **span: Any) -> ledger_history.History:
    reader = await open_reader(path)
    try:
        return await ledger_history.read(reader, **span)
    finally:
        await reader.close()


def lived(known: ledger_history.History, chosen: Tuned = WAITS) -> own_replay.Replayed:
    made = own_replay.replay(known, WORK, chosen, Limits(), MINUTE)
    assert made is not None
    return made


async def test_a_bid_is_lost_to_a_floor_above_it_and_comes_back_at_one_that_is_not(tmp_path: Path) -> None:
    made = lived(await read(await written(tmp_path / "l.sqlite", LOOKS)))
    assert (made.paper.interruptions, made.paper.rents) == (1, 1)
    # It ran from its start to minute 120, and again from a minute after 180 to the end at 240.
    hours = made.paper.counted.paid / 3.6e9
    assert hours == pytest.approx((120 - START + 240 - 181) / 60, abs=0.09), "metered every five minutes"
    ran = (120 - START + 240 - 181) / 60
    assert made.paper.counted.spent.dollars == pytest.approx(0.20 * ran + DISK * 4 + IMAGE, abs=0.001)
    # The work that reached a checkpoint, every 15 minutes after a minute's restore, and the work that the loss took.
    worked = 120 - START - 1
    assert made.paper.counted.lost == pytest.approx((worked % 15) * 60e6, abs=5)


async def test_on_demand_pays_the_ask_of_its_first_look(tmp_path: Path) -> None:
    dear = [look(0, "0.20", "0.50"), *LOOKS[1:]]
    made = lived(await read(await written(tmp_path / "l.sqlite", dear)), ON_DEMAND)
    ran = (240 - START) / 60
    assert made.paper.counted.spent.dollars == pytest.approx(0.50 * ran + DISK * 4 + IMAGE, abs=0.001)
    assert made.paper.interruptions == 0


async def test_another_future_changes_nothing_before_it(tmp_path: Path) -> None:
    other = [*LOOKS[:2], look(120, "0.01"), look(180, "2.00")]
    known = [await read(await written(tmp_path / f"{n}.sqlite", looks)) for n, looks in enumerate((LOOKS, other))]
    early = [[each for each in one.moments(MINUTE) if each.now < NOW + 120 * MINUTE] for one in known]
    assert early[0] == early[1]
    assert len(early[0]) == 120
    assert next(each for each in known[0].moments(MINUTE) if each.offers).offers[0].floor == per_hour("0.20")


async def test_a_span_begins_with_the_prices_of_then(tmp_path: Path) -> None:
    path = await written(tmp_path / "l.sqlite", LOOKS)
    known = await read(path, since=NOW + 50 * MINUTE, until=NOW + 130 * MINUTE)
    assert known.span == (NOW + 60 * MINUTE, NOW + 120 * MINUTE)
    assert next(known.moments(MINUTE)).offers[0].floor == per_hour("0.20"), "unchanged since minute 0"


async def test_a_ledger_that_kept_prices_alone_is_replayed_and_says_what_was_assumed(tmp_path: Path) -> None:
    known = await read(await written(tmp_path / "l.sqlite", LOOKS, with_looks=False))
    assert (known.assumed, len(known.looks)) == (1, 3)
    assert lived(known).paper.rents == 1


def test_the_verb_shows_both_sides_and_what_stands_behind_them(tmp_path: Path) -> None:
    import asyncio

    path = asyncio.run(written(tmp_path / "l.sqlite", LOOKS))
    config = tmp_path / "agent.toml"
    config.write_text(CONFIG)
    run, base = CliRunner().invoke, ["replay", str(path), "--config", str(config), "--strategy"]
    told = run(app, [*base, "patient", "--set", "may_raise=false", "--set", "leave_after=never", "--json"])
    assert told.exit_code == 0, told.stderr
    shown = json.loads(told.stdout)
    (one,) = shown["workloads"]
    assert (one["actual"]["dollars"], one["replayed"]["rents"]) == (0.0, 1)
    assert any("paper" in rule for rule in shown["rules"])
    assert "patient on paper" in run(app, [*base, "patient"]).stdout
    for more, words in (
        (["none"], "there is no strategy"),
        (["patient", "--set", "headrom=1"], "headroom, idle_worth, least_gain"),
        (["patient", "--set", "headroom"], "write KEY=VALUE"),
        (["patient", "--set", "headroom=9"], "less than or equal to 4"),
        (["patient", "--workload", "none"], "known: train"),
    ):
        bad = run(app, [*base, *more])
        assert bad.exit_code == 2, more
        assert words in re.sub(r"\s+", " ", bad.stderr)
    empty = asyncio.run(written(tmp_path / "empty.sqlite", []))
    nothing = run(app, ["replay", str(empty), "--config", str(config), "--strategy", "patient"])
    assert (nothing.exit_code, "nothing to replay" in nothing.stderr) == (1, True)
