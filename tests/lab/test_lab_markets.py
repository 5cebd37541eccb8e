"""`gpubid lab bench --problem bids --market NAME`: each vendor's auction by its record, and what a wrong name says."""

import importlib.metadata
import json
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.lab.bids import lab_markets
from agent.lab.bids.auctions.auctions_problem import AuctionsProblem

COMMAND = ["lab", "bench", "--problem", "bids", "--workers", "1"]
OTHER = lab_markets.LabMarket("other", lambda days: AuctionsProblem(days.climates, days.seeds))


def called(*more: str) -> Any:
    return CliRunner().invoke(app, [*COMMAND, *more])


def test_a_table_of_auctions_has_each_figure_with_its_paired_interval() -> None:
    named = ("--strategies", "patient,always_32", "--climates", "second_price", "--seeds", "1-2", "--json")
    done = called("--market", "mithril", *named, "--hours", "0.3", "--poll-seconds", "300")
    assert done.exit_code == 0, done.output
    tables = json.loads(done.stdout)["tables"]
    found = {(table["machine"], table["value"].partition(",")[0]) for table in tables}
    hours = {"1x A100": ("$0.55/h", "$1.10/h", "$2.20/h"), "8x H100": ("$11.36/h", "$22.72/h", "$45.44/h")}
    assert found == {(machine, value) for machine, values in hours.items() for value in values}
    for table in tables:
        assert "semi-synthetic" in table["market"]
        ours, rule = table["strategies"]
        assert set(rule["figure_differences"]) == {"net $", "useful h", "$ / useful h"}
        # Two seeds are too few for an interval.
        assert rule["figure_differences"]["$ / useful h"]["ci95"] == [None, None]
        assert rule["difference_vs_baseline"] == pytest.approx(ours["figures"]["net $"] - rule["figures"]["net $"])
        assert "figure_differences" not in ours


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--market", "runpod"), "the lab has no auction of runpod; known: mithril, vast"),
        (("--market", "mithril", "--workload", "train"), "--workload"),
    ],
)
def test_what_cannot_be_run_ends_with_what_to_write(given: tuple[str, ...], said: str) -> None:
    done = called(*given)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def installed(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    entry = importlib.metadata.EntryPoint(name, value, lab_markets.GROUP)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: (entry,))


def test_a_package_adds_a_market_and_replaces_none(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "other", f"{__name__}:OTHER")
    assert set(lab_markets.known()) == {"mithril", "other", "vast"}
    installed(monkeypatch, "vast", f"{__name__}:OTHER")
    assert lab_markets.known()["vast"].name == "vast"


@pytest.mark.parametrize(("value", "said"), [("OTHER", "no lab market named 'wrong'"), ("NONE", "cannot be imported")])
def test_a_broken_package_is_named(monkeypatch: pytest.MonkeyPatch, value: str, said: str) -> None:
    installed(monkeypatch, "wrong", f"{__name__}:{value}")
    with pytest.raises(ValueError, match=said):
        lab_markets.known()
