"""`gpubid spend` and `savings` read the ledger, in a table, as JSON and as comma-separated values."""

import asyncio
import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.clock import SteppedClock
from agent.domain.market import gpu
from agent.domain.market.interruption import Cause
from agent.domain.market.price import PriceSample
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.paid_time import Phases
from agent.domain.slot import Slot
from agent.ledger.store import Ledger
from agent.ledger.tables.spend_rows import SpendEntry
from tests.ledger import values
from tests.support.configs import GOOD

HOUR = 3_600_000_000
NOW = values.NOW


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Write a configuration and a ledger with one day of one lease."""
    file = tmp_path / "agent.toml"
    file.write_text(f"{GOOD}\n[ledger]\npath = '{tmp_path / 'ledger.sqlite'}'\n")
    asyncio.run(_filled(tmp_path / "ledger.sqlite"))
    return file


async def _filled(path: Path) -> None:
    ledger = await Ledger.open(path, clock=SteppedClock(NOW))
    opened = values.lease(1, opened_at=NOW - timedelta(hours=4), ask=UsdPerHour(400_000))
    async with ledger.transaction() as tx:
        tx.open_lease(opened)
        spent = (Usd(800_000), Usd(20_000))
        tx.add_spend(SpendEntry("l1", "train", "vast", Tenure.INTERRUPTIBLE, NOW.date(), gpu=spent[0], disk=spent[1]))
        tx.add_phases(Tenure.INTERRUPTIBLE, Phases("l1", NOW.date(), restoring=HOUR, useful=3 * HOUR))
        tx.add_phases(Tenure.INTERRUPTIBLE, Phases("l1", NOW.date(), spoiled=HOUR))
        tx.add_loss("l1", datetime(2026, 11, 20, 11, tzinfo=UTC), Cause.OUTBID, HOUR)
    await ledger.close()


def ran(config: Path, *words: str) -> str:
    done = CliRunner().invoke(app, [words[0], "--config", str(config), *words[1:]])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_savings_are_dated_and_their_sum_is_that_of_spend(config: Path) -> None:
    for words in ((), ("--baseline", "aws"), ("--baseline", "runpod")):
        told = json.loads(ran(config, "savings", *words, "--json"))
        spent = json.loads(ran(config, "spend", "--json"))
        total = told["total"]["dollars"] + told["total"]["unpriced_dollars"]
        assert total == pytest.approx(spent["total"]["dollars"], abs=1e-9)
        assert abs((datetime.fromisoformat(told["as_of"]) - datetime.now(UTC)).total_seconds()) < 600
        assert "as of 20" in ran(config, "savings", *words)


@pytest.mark.parametrize("by", ["day", "week", "month", "workload", "market", "gpu", "tenure", "lease", "cause"])
def test_every_grouping_adds_up(config: Path, by: str) -> None:
    told = json.loads(ran(config, "spend", "--by", by, "--json"))
    assert told["total"]["dollars"] == pytest.approx(0.82)
    assert sum(row["dollars"] for row in told["rows"]) == pytest.approx(0.82)
    assert told["total"]["paid_hours"] == 4
    assert told["total"]["lost_hours"] == 1
    assert told["total"]["dollars_per_useful_hour"] == pytest.approx(0.41)


def test_a_table_and_values_for_other_programs(config: Path) -> None:
    assert "$0.8200" in ran(config, "spend")
    rows = list(csv.DictReader(io.StringIO(ran(config, "spend", "--by", "cause", "--csv"))))
    assert [row["key"] for row in rows] == ["outbid", "none", "all"]
    assert float(rows[0]["lost_dollars"]) == pytest.approx(0.2)


def test_dollars_per_unit_of_work(config: Path) -> None:
    # A later host lost work and did it again, and the next run began from the beginning: 300 + 110.
    named = 'unit = "step"\ncommand = "a"\n[workloads.train.guard]\npaths = ["/w"]\n'
    config.write_text(config.read_text().replace("\n[ledger]", f"{named}\n[ledger]"))
    (row,) = json.loads(ran(config, "spend", "--by", "workload", "--json"))["rows"]
    assert (row["unit"], row["units"], row["dollars_per_unit"]) == ("step", None, None)
    assert "train: dollars per step are not known" in ran(config, "spend", "--by", "workload")
    told = [(1, 1, 900.0), (2, 1, 300.0), (3, 2, 110.0), (4, 2, None)]
    asyncio.run(_reported(config.with_name("ledger.sqlite"), told))
    (row,) = json.loads(ran(config, "spend", "--by", "workload", "--json"))["rows"]
    assert (row["units"], row["dollars_per_unit"]) == (410, pytest.approx(0.002))
    shown = ran(config, "spend", "--by", "workload")
    assert "$/unit" in shown
    assert "train: $0.002 per step; guards reported 410" in shown
    assert json.loads(ran(config, "spend", "--json"))["rows"][0]["dollars_per_unit"] is None
    asyncio.run(_renamed(config.with_name("ledger.sqlite")))
    (row,) = json.loads(ran(config, "spend", "--by", "workload", "--json"))["rows"]
    assert (row["units"], row["dollars_per_unit"]) == (None, None), "a part of its cost is under the old name"
    cut = ran(config, "spend", "--by", "workload", "--since", "2026-11-01")
    assert "dollars per unit are of all days" in cut


async def _reported(path: Path, told: list[tuple[int, int, float | None]]) -> None:
    ledger = await Ledger.open(path, clock=SteppedClock(NOW))
    async with ledger.transaction() as tx:
        for number, run, progress in told:
            at = NOW + timedelta(minutes=number)
            tx.keep_guard_figures(GuardFigures(f"g{number}", Slot("train", 0), "vast", "7", run, 1, at, progress))
    await ledger.close()


async def _renamed(path: Path) -> None:
    ledger = await Ledger.open(path, clock=SteppedClock(NOW))
    async with ledger.transaction() as tx:
        tx.begin_run(GuardRun(Slot("train", 0), 1, "before", "", NOW))
    await ledger.close()


def test_days_that_are_left_out(config: Path) -> None:
    told = json.loads(ran(config, "spend", "--until", "2026-11-20", "--json"))
    assert (told["rows"], told["total"]["dollars"]) == ([], 0)
    assert CliRunner().invoke(app, ["spend", "-c", str(config), "--since", "yesterday"]).exit_code == 2


def test_savings_against_a_cloud_take_what_its_pools_asked_at_that_time(config: Path, tmp_path: Path) -> None:
    """The published table knows no RTX 4090 of aws; the server of dstack offered one there."""
    asyncio.run(_offered(tmp_path / "ledger.sqlite"))
    told = json.loads(ran(config, "savings", "--baseline", "aws", "--json"))
    assert told["total"]["compared_dollars"] == pytest.approx(2 * 0.9)
    assert told["cited"] == ["1x RTX 4090: what the server's offers asked at aws at that time"]
    assert told["total"]["unpriced_dollars"] == 0
    other = json.loads(ran(config, "savings", "--baseline", "gcp", "--json"))
    assert other["total"]["compared_dollars"] is None


async def _offered(path: Path) -> None:
    ledger = await Ledger.open(path, clock=SteppedClock(NOW))
    async with ledger.transaction() as tx:
        at, ask = NOW - timedelta(hours=6), UsdPerHour(900_000)
        tx.observe_prices([PriceSample(at, "dstack", "pool/aws/us-east-1/rtx", gpu.model("RTX 4090"), 1, ask, None)])
    await ledger.close()


def test_savings_on_the_same_market_and_against_a_cloud(config: Path) -> None:
    told = json.loads(ran(config, "savings", "--json"))
    assert told["against"] == "on_demand"
    assert told["total"]["compared_dollars"] == pytest.approx(0.8)
    assert told["total"]["saved_dollars"] == pytest.approx(-0.02)
    cloud = json.loads(ran(config, "savings", "--baseline", "runpod", "--json"))
    assert cloud["total"]["compared_dollars"] > 0
    assert cloud["cited"]
    assert "2025-04" in cloud["cited"][0]
    unknown = json.loads(ran(config, "savings", "--baseline", "aws", "--json"))
    assert unknown["total"]["unknown_hours"] == 2
    assert (unknown["total"]["compared_dollars"], unknown["total"]["saved_dollars"]) == (None, None)
    assert (unknown["total"]["dollars"], unknown["total"]["unpriced_dollars"]) == (0, pytest.approx(0.82))
    said = ran(config, "savings", "--baseline", "aws")
    assert "aws has no price for 1x RTX 4090: $0.8200 and 2.00 useful hours are compared with nothing" in said
    assert "-$" not in said
    assert "$-" not in said
    assert CliRunner().invoke(app, ["savings", "-c", str(config), "--baseline", "nowhere"]).exit_code == 2
