"""`gpubid strategy learned`: the ledger's record of hosts, after a restart too."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.decide.pricing import rival_bids
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HALF_LIFE, HostRecord
from agent.domain.market.outbids import Outbids
from agent.domain.record.host_check import HostCheck
from agent.ledger.store import Ledger
from agent.web.reading import learned_json
from tests.support.programs import gpubid

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ROOT = Path(__file__).parents[2]


def test_rates_chances_and_speeds_come_with_what_they_rest_on() -> None:
    hour = 3600.0
    busy = HostRecord("vast", "7", "o1", 4 * hour, 3, 2, 1, NOW, 2, 4 * hour, 10.0, 100.0)
    quiet = HostRecord("vast", "8", "o1", 9 * hour, 0, 1, 0, NOW - timedelta(days=10), 0, 8 * hour)
    (market,) = learned_json.learned([busy, quiet], [], NOW)["markets"]
    first, second = market["hosts"]
    assert (first["host"], second["host"]) == ("8", "7")
    assert (first["running_hours"], first["interruptible_hours"]) == pytest.approx((4.5, 4.0))
    assert second["host_failures"] == 1
    assert second["loaded_mbps"] == pytest.approx(800)
    assert first["loaded_mbps"] is None
    assert second["losses_per_hour"] > market["losses_per_hour"] > first["losses_per_hour"]
    assert second["hours_to_a_loss"] == pytest.approx(1 / second["losses_per_hour"])
    assert market["interruptible_hours"] == pytest.approx(8.0)
    assert market["owners"][0]["losses_to_market"] == 2


def test_rivals_come_with_the_counts_and_what_was_assumed() -> None:
    outbids = Outbids.one(0.1, 0.3)
    host = HostRecord("vast", "7", updated_at=NOW - HALF_LIFE, market_losses=6, displaced=4, outbids=outbids)
    told = learned_json.learned([host, HostRecord("runpod", "8", updated_at=NOW, displaced=1)], [], NOW)["rivals"]
    assert (told["outbids"], told["displaced"], told["assumed_weighs"]) == (0.5, 3.0, 16.0)
    steps = {step["headroom"]: step for step in told["steps"]}
    assert (steps[0.1]["ours"], steps[0.25]["rivals"], steps[0.5]["rivals"]) == (0.5, 0.5, 0.0)
    assert steps[0.0]["losing_share"] == steps[0.0]["assumed"] == pytest.approx(1.0)
    law = rival_bids.learned(HostRecord("", "", displaced=3.0, outbids=Outbids().plus(outbids, 0.5)))
    assert steps[0.5]["losing_share"] == pytest.approx(law.losing_share(0.5))
    assert steps[0.5]["assumed"] == pytest.approx(rival_bids.ASSUMED.losing_share(0.5))


@pytest.mark.nightly
async def test_what_a_rehearsal_learned_is_shown_from_its_ledger(tmp_path: Path) -> None:
    shipped = (ROOT / "agent.toml").read_text()
    config = tmp_path / "agent.toml"
    config.write_text(shipped.replace('path = "gpubid.sqlite"', f'path = "{tmp_path}/kept/rehearsal.sqlite"'))
    kept = ("--config", config, "--keep-ledger", tmp_path / "kept")
    ran = await gpubid(tmp_path, "rehearse", "--climate", "calm", "--hours", "1", "--json", *kept)
    assert ran.code == 0, ran
    shown = await gpubid(tmp_path, "strategy", "learned", "--config", config, "--json")
    assert shown.code == 0, shown
    (market,) = shown.json["markets"]
    assert market["market"] == "vast"
    assert market["hosts"][0]["starts_ok"] >= 0
    ledger = await Ledger.open(tmp_path / "kept" / "rehearsal.sqlite", clock=SteppedClock(NOW))
    async with ledger.transaction() as tx:
        for host_id, speed in (("h1", 100.0), ("h2", 100.0), ("h3", 60.0)):
            check = HostCheck(host_id, "vast", host_id, "", GpuModel("L4"), 1, 30.0, NOW, speed, None, 9.5)
            links = replace(check, pcie_generation=3, pcie_width=8, pcie_share=0.25, clock_events=0x24)
            tx.keep_host_check(links)
    await ledger.close()
    plain = await gpubid(tmp_path, "strategy", "learned", "--config", config)
    assert plain.code == 0, plain
    assert "losses to the market an hour" in plain.out
    assert "rivals: on-demand renters cause " in plain.out
    (row,) = (line.split() for line in plain.out.splitlines() if line.split()[:1] == ["h3"])
    assert row == ["h3", "L4", "1", "60.0", "9.5", "3.0", "x8", "(25%)", "power", "limit,", "heat", "80%"]
