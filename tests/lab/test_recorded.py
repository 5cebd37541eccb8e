"""The problem `recorded`: a rehearsed ledger in stretches, on paper, in the bench and in `gpubid tune`."""

import itertools
import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.cli import main
from agent.cli.shared import session
from agent.cli.tune_loop.step_records import plain
from agent.domain.money import usd
from agent.lab.recorded.recorded_problem import RecordedProblem
from agent.ledger.file import sidecar
from tests.support.configs import GOOD

CONFIG = f"{GOOD}gpu = ['RTX 4090']\n[ledger]\npath = 'kept/rehearsal.sqlite'\n[agent]\npoll = '60s'\n"


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a configuration and the ledger of ten hours."""
    place = tmp_path_factory.mktemp("recorded")
    (place / "agent.toml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        run("rehearse", "--climate", "bidding_war", "--hours", "10", "--seed", "3", "--keep-ledger", "kept")
    return place


@pytest.fixture
def place(rehearsed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(rehearsed, tmp_path, dirs_exist_ok=True)
    monkeypatch.delenv("GPUBID_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str, code: int | None = 0) -> str:
    ran = CliRunner().invoke(main.app, words, env={"COLUMNS": "200"})
    assert code is None or ran.exit_code == code, ran.output
    return " ".join(ran.output.split())


def problem(place: Path, hours: float) -> RecordedProblem:
    settings = session.read(place / "agent.toml")[0]
    return RecordedProblem(settings.ledger, settings.workloads[0], settings.limits, hours)


def test_stretches_do_not_overlap_and_cost_their_bill_and_their_idle_hours(place: Path) -> None:
    made = problem(place, 3.0)
    cases = made.cases()
    assert len(cases) == 3
    assert all(each.until - each.since == timedelta(hours=3) for each in cases)
    assert all(one.until <= other.since for one, other in itertools.pairwise(cases))
    for case in cases:
        score = made.score("patient", case)
        assert score.cost == pytest.approx(score.figures["$"] + 0.45 * (3.0 - score.figures["useful h"]))
        assert made.score("hindsight", case).cost <= score.cost
        assert made.score("patient", case) == score
    assert sum(made.score("patient", case).figures["useful h"] for case in cases) > 3.0


def test_other_numbers_decide_otherwise_on_the_same_searches(place: Path) -> None:
    made = problem(place, 3.0)
    params = made.params("patient")
    assert params is not None
    timid = made.with_params("patient", params.model_copy(update={"ceiling": 0.05, "on_demand_share": 0.01}))
    bold = made.with_params("bold", params)
    assert sum(timid.score("patient", case).figures["useful h"] for case in made.cases()) < 3.0
    assert [bold.score("bold", each) for each in made.cases()] == [made.score("patient", each) for each in made.cases()]


@pytest.mark.parametrize(
    ("work", "wants", "caps"),
    [
        ({"slots": 2}, {}, {}),
        ({"markets": ("vast",)}, {}, {}),
        ({}, {"regions": ("DE",)}, {}),
        ({}, {"query": "cpu_cores >= 8"}, {}),
        ({}, {}, {"per_day": usd("1.00")}),
    ],
)
def test_the_facts_change_with_all_that_changes_a_stretch(
    place: Path, work: dict[str, Any], wants: dict[str, Any], caps: dict[str, Any]
) -> None:
    made = problem(place, 3.0)
    other = replace(
        made,
        work=replace(made.work, requirements=replace(made.work.requirements, **wants), **work),
        caps=replace(made.caps, **caps),
    )
    assert plain(other.about()) != plain(made.about())
    assert plain(problem(place, 3.0).about()) == plain(made.about())


@pytest.mark.usefixtures("place")
@pytest.mark.nightly
def test_a_ledger_with_too_little_time_says_what_to_do() -> None:
    assert "two stretches of 9 h are needed" in run("lab", "bench", "--problem", "recorded", "--hours", "9", code=2)
    missing = run("lab", "bench", "--problem", "recorded", "--ledger", "other.sqlite", "--hours", "3", code=None)
    assert "there is no ledger at other.sqlite" in missing


@pytest.mark.nightly
def test_tune_fetches_a_copy_of_the_ledger_and_holds_later_stretches_out(place: Path) -> None:
    words = ("--hours", "2", "--trials", "2", "--keys", "ceiling", "--workers", "1", "--force")
    said = run("tune", "weeks", "--problem", "recorded", *words)
    assert "1 data: recorded, 4 runs of train for patient" in said
    assert "5 shadow: weeks is in the shadow of train" in said
    folder = place / "tuning" / "weeks"
    data = json.loads((folder / "1-data.json").read_text())
    assert data["asked"]["ledger"] == str(folder / "ledger.sqlite")
    found = json.loads((folder / "2-search.json").read_text())["result"]
    assert found["held_out"]["runs"] == 2
    assert found["folds"][0]["held_out_since"] is not None
    (folder / "3-chart.json").unlink()
    (folder / "4-file.json").unlink()
    ran = CliRunner().invoke(main.app, ["tune", "weeks", "--json"])
    told = json.loads(ran.stdout)
    assert "3 chart: weeks beside patient" in " ".join(told["said"])
    is_better = found["held_out"]["difference"] < 0
    assert (ran.exit_code, told["refusal"] is None) == ((0, True) if is_better else (1, False))
    assert [each["step"] for each in told["steps"]][:3] == ["data", "search", "chart"]


def test_tune_copies_the_ledger_anew_after_a_refusal_and_notes_no_backup(place: Path) -> None:
    words = ("tune", "weeks", "--problem", "recorded", "--hours", "9", "--workers", "1")
    assert "two stretches of 9 h are needed" in run(*words, code=2)
    with closing(sqlite3.connect(place / "kept" / "rehearsal.sqlite")) as live, live:
        live.execute("CREATE TABLE a_week_later (noted TEXT)")
    assert "two stretches of 9 h are needed" in run(*words, code=2)
    with closing(sqlite3.connect(place / "tuning" / "weeks" / "ledger.sqlite")) as copied:
        assert copied.execute("SELECT name FROM sqlite_master WHERE name = 'a_week_later'").fetchall()
    assert sidecar.last_backup(place / "kept" / "rehearsal.sqlite") is None
