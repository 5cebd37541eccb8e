"""Laws fitted to observations: they find the law of the spells, censored or seen at ticks only; input is checked."""

import json
import math
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.lab.traces import lifetimes, lomax
from agent.lab.traces.survival import Spell
from tests.support import builders
from tests.support.builders import NOW

KAPPA, S = 0.9, 0.4
POOL = "zone \U0001f4a1"


def drawn(count: int, *, cap: float = 24.0, gap: float = 0.0, seed: int = 5) -> list[Spell]:
    shares = np.random.default_rng(seed).random(count)
    hours = S * (shares ** (-1 / KAPPA) - 1)
    if gap:
        hours = np.ceil(hours / gap) * gap
    return [Spell(float(min(each, cap)), bool(each < cap)) for each in hours]


@pytest.mark.parametrize("gap", [0.0, 1 / 6])
def test_a_law_is_found_again_also_where_spells_are_cut_and_seen_at_ticks(gap: float) -> None:
    spells = drawn(4000, gap=gap)
    found = lomax.fitted(spells, gap)
    assert found.law.kappa == pytest.approx(KAPPA, abs=0.08)
    assert found.law.s == pytest.approx(S, abs=0.08)
    assert found.law.log_likelihood > found.memoryless
    assert found.within.distance < found.within.bound
    assert found.later is not None
    assert found.later.distance < 2 * found.later.bound
    assert sum(each.seen for each in found.within.bins) == found.ended < found.spells


def test_the_likelihood_is_the_highest_around() -> None:
    spells = drawn(300)
    law = lomax.fit(spells)
    for kappa, s in ((1.1, 1.0), (0.9, 1.0), (1.0, 1.2), (1.0, 0.8)):
        other = lomax.Lomax(law.kappa * kappa, law.s * s, 0.0, 0.0)
        assert told(other, spells) < told(law, spells)
    assert told(law, spells) == pytest.approx(law.log_likelihood)


def told(law: lomax.Lomax, spells: list[Spell]) -> float:
    risk = sum(law.kappa * math.log1p(spell.hours / law.s) for spell in spells)
    return sum(math.log(law.kappa / (spell.hours + law.s)) for spell in spells if spell.has_ended) - risk


def test_a_law_that_is_none_shows_by_its_distance() -> None:
    same = [Spell(5.0 + number / 1000, has_ended=True) for number in range(200)]
    found = lomax.fitted(same)
    assert found.within.distance > 3 * found.within.bound


def test_too_few_ends_are_no_law() -> None:
    with pytest.raises(ValueError, match="only 4 spells"):
        lomax.fit([Spell(1.0, number < 4) for number in range(50)])


def event(kind: str, hours: float, cause: Cause | None = None, **more: int) -> Event:
    rates: dict[str, Any] = {name: UsdPerHour(micros) for name, micros in more.items()}
    return Event(NOW + timedelta(hours=hours), EventKind(kind), lease_id="l1", cause=cause, **rates)


def test_stays_in_the_ledger_end_by_the_market_or_are_censored() -> None:
    lease = builders.lease(1, lease_id="l1", tenure=Tenure.INTERRUPTIBLE)
    told = [
        event("lease.running", 0),
        event("lease.interrupted", 2, Cause.OUTBID),
        event("lease.resumed", 3),
        event("lease.interrupted", 4, Cause.HOST_OFFLINE),
        event("lease.running", 5),
        event("lease.released", 9),
        event("lease.running", 10),
        event("lease.rebid", 11),
    ]
    (pool,) = lifetimes.of_ledger([lease], reversed(told))
    assert [(spell.hours, spell.has_ended) for spell in pool.spells] == [(2, True), (1, False), (4, False), (1, False)]
    bought = builders.lease(1, lease_id="l1", tenure=Tenure.ON_DEMAND)
    assert lifetimes.of_ledger([bought], told) == []


def test_rivals_are_known_by_how_far_they_beat_our_bids() -> None:
    shares = (1 - (np.arange(200) + 0.5) / 200) ** (-1 / 8.0)
    told = [event("lease.interrupted", 1, Cause.OUTBID, bid=200_000, floor=int(200_000 * each)) for each in shares]
    found = lifetimes.rivals([*told, event("lease.interrupted", 2, Cause.DISPLACED, bid=1, floor=2)])
    assert found is not None
    assert found.seen == 200
    assert found.alpha == pytest.approx(8.0, rel=0.05)
    assert found.distance < found.bound
    assert lifetimes.rivals(told[:4]) is None


def test_the_command_fits_traces_and_tables(tmp_path: Path) -> None:
    up = [bool(int(spell.hours * 6) % 2) for spell in drawn(900, gap=1 / 6)]
    row = {"pool": POOL, "gap_seconds": 600, "start": "2026-01-01T00:00:00Z", "available": [int(each) for each in up]}
    (tmp_path / "zone.json").write_text(json.dumps(row))
    lines = [f"z,m,2026-01-01T00:00:{n % 60:02}Z,{each.hours * 3600}" for n, each in enumerate(drawn(400, cap=30))]
    (tmp_path / "lives.csv").write_text("zone,machine_type,started,lifetime_seconds\n" + "\n".join(lines) + "\n")
    ran = CliRunner().invoke(app, ["lab", "fit", str(tmp_path / "zone.json"), "--json"])
    fits = json.loads(ran.stdout)["fits"]
    assert [(each["pool"], each["of"]) for each in fits[:2]] == [("all pools", "loss"), ("all pools", "return")]
    capped = CliRunner().invoke(app, ["lab", "fit", str(tmp_path / "lives.csv"), "--cap-hours", "24", "--json"])
    whole = json.loads(capped.stdout)["fits"][0]
    assert whole["kappa"] == pytest.approx(KAPPA, abs=4 * whole["kappa_error"])
    assert whole["ended"] < whole["spells"] == 400
    assert "uses the same spells" in whole["caveat"]
    toml = CliRunner().invoke(app, ["lab", "fit", str(tmp_path / "lives.csv"), "--toml"])
    assert '[loss."all pools"]' in toml.stdout
    named = CliRunner().invoke(app, ["lab", "fit", str(tmp_path / "zone.json"), "--toml"])
    assert set(tomllib.loads(named.stdout)["loss"]) == {"all pools", POOL}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("zone,started\n", "machine_type, lifetime_seconds"),
        ("zone,machine_type,started,lifetime_seconds\nz,m,now,5\n", ":2: row"),
        ("zone,machine_type,started,lifetime_seconds\nz,m,2026-01-01T00:00:00Z,-5\n", ":2: row"),
        ("zone,machine_type,started,lifetime_seconds\nz,m,2026-01-01T00:00:00,5\n", ":2: row"),
        (
            "started,lifetime_seconds,machine_type,zone\n2026-01-01T00:00:00Z,5,m,z\n2026-01-01T00:00:00Z,5,m\n",
            ":3: row",
        ),
    ],
)
def test_a_table_that_is_none_is_refused_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "lives.csv"
    file.write_text(text)
    ran = CliRunner().invoke(app, ["lab", "fit", str(file)])
    assert ran.exit_code == 2
    assert says in ran.output


def test_nothing_to_fit_to_is_said(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["lab", "fit"]).exit_code == 2
    assert CliRunner().invoke(app, ["lab", "fit", str(tmp_path / "none.csv")]).exit_code == 2
