"""Own strategy files in every verb of the lab: by path, by stem in a folder, by stem in the configuration's folder."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.cli import main
from tests.support.configs import GOOD

BENCH = ["lab", "bench", "--problem", "bids", "--climates", "calm", "--seeds", "1-4", "--hours", "1", "--workers", "1"]
BOLD = 'strategy = "patient"\nheadroom = 0.5\nlower_after = "1h"\n'


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GPUBID_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strategies").mkdir()
    (tmp_path / "strategies" / "bold.toml").write_text(BOLD)
    (tmp_path / "strategies" / "late.toml").write_text('strategy = "deadline"\n')
    return tmp_path


def run(*words: str, code: int = 0) -> Any:
    ran = CliRunner().invoke(main.app, list(words), env={"COLUMNS": "200"})
    assert ran.exit_code == code, ran.output
    return ran


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("strategies/bold.toml", []),
        ("bold", ["--directory", "strategies"]),
        ("bold", ["--config", "mine.toml"]),
        ("bold", []),
    ],
)
def test_a_bench_runs_an_own_file_beside_the_shipped_strategies(place: Path, name: str, more: list[str]) -> None:
    text = GOOD + '[strategies]\ndirectory = "strategies"\n'
    (place / ("mine.toml" if "--config" in more else "agent.toml")).write_text(text)
    ran = run(*BENCH, "--strategies", f"{name},patient", "--baseline", "patient", "--json", *more)
    table = json.loads(ran.stdout)["tables"][0] if "tables" in ran.stdout else json.loads(ran.stdout)
    rows = {row["strategy"]: row for row in table["strategies"]}
    assert {"bold", "patient"} <= rows.keys()
    assert rows["bold"]["digest"] != rows["patient"]["digest"]
    assert table["baseline"] == "patient"


def test_equal_numbers_score_alike(place: Path) -> None:
    (place / "strategies" / "same.toml").write_text('strategy = "patient"\n')
    told = json.loads(run(*BENCH, "--strategies", "strategies/same.toml,patient", "--json").stdout)
    rows = {row["strategy"]: row for row in told["strategies"]}
    assert rows["same"]["mean_cost"] == rows["patient"]["mean_cost"]
    assert rows["same"]["digest"] == rows["patient"]["digest"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([*BENCH, "--strategies", "nope"], "bids knows no nope; it knows patient, hedged"),
        (
            [*BENCH, "--strategies", "nope"],
            "write its path, such as strategies/bold.toml, or its stem with --directory",
        ),
        ([*BENCH, "--strategies", "none/nope.toml"], "none/nope.toml: there is no such file"),
        ([*BENCH, "--strategies", "strategies/late.toml"], "has numbers of deadline, and bids runs own files of"),
        (["lab", "check", "nope"], "there is no strategy 'nope'; known: deadline"),
        (["strategy", "show", "strategies/nope.toml"], "strategies/nope.toml: there is no such file"),
    ],
)
def test_what_is_not_there_is_told_with_what_to_write(words: list[str], says: str) -> None:
    assert says in " ".join(run(*words, code=2).stderr.split())


@pytest.mark.nightly
def test_report_check_and_tune_take_a_path(place: Path) -> None:
    page = ["--problem", "bids", "--climates", "calm", "--seeds", "1-4", "--hours", "0.5", "--workers", "1"]
    run("lab", "report", "page.html", *page, "--strategies", "strategies/bold.toml,patient")
    assert "bold" in (place / "page.html").read_text()
    assert "ok: bold proposed the same" in run("lab", "check", "strategies/bold.toml").stdout
    run(
        "lab", "tune", "strategies/bold.toml", *page, "--keys", "ceiling", "--trials", "2", "--folds", "1",
        "--out", "tuned.toml",
    )  # fmt: skip
    text = (place / "tuned.toml").read_text()
    assert "headroom = 0.5\n" in text, "the search starts from the own file"
    assert (place / "strategies" / "bold.toml").read_text() == BOLD


def test_show_tells_value_unit_range_default_and_what_was_changed() -> None:
    said = run("strategy", "show", "strategies/bold.toml").stdout
    assert "headroom = 0.5  # share, 0 to 4; CHANGED, the default is 0.1" in said
    assert 'lower_after = "1h"  # duration; CHANGED, the default is "45m"' in said
    assert "ceiling = 0.9  # share, above 0 to 1; the default" in said
    assert "may_raise = true  # switch; the default" in said
    assert "# changed: headroom, lower_after" in said
    facts = json.loads(run("strategy", "show", "strategies/bold.toml", "--json").stdout)
    assert facts["headroom"] == {"value": 0.5, "unit": "share", "range": "0 to 4", "default": 0.1, "is_changed": True}


def test_show_is_toml_that_gives_the_same_numbers(place: Path) -> None:
    (place / "agent.toml").write_text(GOOD)
    said = run("strategy", "show", "hedged").stdout
    (place / "strategies" / "again.toml").write_text(f'strategy = "hedged"\n{said}')
    assert "nothing, every number is as shipped" in run("strategy", "show", "strategies/again.toml").stdout
    assert "target = 0.0  # share of the time, 0 to 0.9999; the default" in said
    assert "most_losses = " in said
    assert "losses per slot and hour, above 0 to 100" in said


def test_diff_says_when_there_are_no_offers_to_compare_on(place: Path) -> None:
    (place / "agent.toml").write_text(GOOD)
    assert "no offers to compare on" not in run("strategy", "diff", "strategies/bold.toml", "patient").stdout
    (place / "agent.toml").write_text(f"{GOOD}slots = 0\n")
    said = " ".join(run("strategy", "diff", "strategies/bold.toml", "patient").stdout.split())
    assert "headroom: 0.5 -> 0.1" in said
    assert "there are no offers to compare on: no slot has a choice to make now, so no market was asked" in said
    told = json.loads(run("strategy", "diff", "strategies/bold.toml", "patient", "--json").stdout)
    assert told["lacking"].startswith("there are no offers to compare on")


@pytest.mark.parametrize("named", ["nowhere", "agent.toml"])
def test_a_folder_that_is_none_is_told_at_the_key_that_names_it(place: Path, named: str) -> None:
    (place / "agent.toml").write_text(GOOD + f'[strategies]\ndirectory = "{named}"\n')
    line = len(GOOD.splitlines()) + 2
    told = f"agent.toml:{line}: strategies.directory: {named} is no directory that can be read; make it, or remove"
    assert told in run("check", code=2).stderr
