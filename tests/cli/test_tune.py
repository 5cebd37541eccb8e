"""`gpubid tune`: the whole way from an empty folder to a promoted strategy, its refusals, and that it resumes."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.cli import main
from agent.cli.tune_loop.loop_data import DEFAULTS
from agent.cli.tune_loop.step_records import STEPS, Records
from agent.lab.tuning import number_search
from tests.support.configs import GOOD
from tests.support.once import made_once

SMALL = ["--seeds", "1-4", "--hours", "1", "--trials", "2", "--keys", "ceiling"]
SMALLER = ["--seeds", "1-3", *SMALL[2:]]
CONFIG = f"# mine\n{GOOD}gpu = ['RTX 4090'] # fast\n[ledger]\npath = 'kept/rehearsal.sqlite'\n[agent]\npoll = '60s'\n"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the search is done, and found numbers that are better on held-out cases."""
    return made_once(tmp_path_factory, "searched", _search)


def _search(place: Path) -> None:
    (place / "agent.toml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        tune("bold", *SMALL, code=None)
    judged(place, difference=-0.5)
    for file in ("4-file.json", "5-shadow.json"):
        (place / "tuning" / "bold" / file).unlink(missing_ok=True)
    shutil.rmtree(place / "strategies", ignore_errors=True)
    (place / "agent.toml").write_text(CONFIG)


@pytest.fixture
def place(searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return entered(searched, tmp_path, monkeypatch)


@pytest.fixture
def shadowed(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which the found numbers have been in the shadow for an hour."""

    def make(place: Path) -> None:
        shutil.copytree(made_once(tmp_path_factory, "searched", _search), place, dirs_exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place)
            tune("bold")
            rehearse()
            assert "next: gpubid tune bold --promote" in tune("bold", "--after", "1")

    return entered(made_once(tmp_path_factory, "shadowed", make), tmp_path, monkeypatch)


@pytest.fixture
def unconfigured(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which the loop began again without agent.toml, and what it said of that."""

    def make(place: Path) -> None:
        shutil.copytree(made_once(tmp_path_factory, "searched", _search), place, dirs_exist_ok=True)
        (place / "agent.toml").unlink()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place)
            (place / "said").write_text(tune("bold", *SMALLER, "--again", "--force", code=2))

    return entered(made_once(tmp_path_factory, "unconfigured", make), tmp_path, monkeypatch)


def entered(made: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy a prepared folder to where the test works."""
    shutil.copytree(made, here, dirs_exist_ok=True)
    monkeypatch.delenv("GPUBID_CONFIG", raising=False)
    monkeypatch.chdir(here)
    return here


def tune(*words: str, code: int | None = 0) -> str:
    # Further processes would import everything for two short studies.
    ran = CliRunner().invoke(main.app, ["tune", *words, "--workers", "1"], env={"COLUMNS": "200"})
    assert code is None or ran.exit_code == code, ran.output
    return " ".join(ran.output.split())


def rehearse() -> None:
    """Run the fleet for more than an hour, with its shadow."""
    ran = CliRunner().invoke(main.app, ["rehearse", "--hours", "1.25", "--seed", "3", "--keep-ledger", "kept"])
    assert ran.exit_code == 0, ran.output


def judged(place: Path, **held_out: Any) -> None:
    """Set the verdict of the search on its held-out cases."""
    records = Records(place / "tuning" / "bold")
    found = records.read("search")
    assert found is not None
    found["result"]["held_out"] |= held_out
    records.file("search").unlink()
    at = found.pop("at")
    found.pop("digest")
    from datetime import datetime

    records.write("search", datetime.fromisoformat(at), found)


def test_the_whole_way(place: Path) -> None:
    (place / "tuning" / "bold" / "3-chart.json").unlink()
    said = tune("bold")
    assert "1 data: done" in said
    assert "2 search: done" in said
    assert "3 chart: bold beside patient: tuning/bold/side-by-side.html" in said
    assert "4 file: strategies/bold.toml" in said
    assert "5 shadow: bold is in the shadow of train in agent.toml" in said
    assert "6 day: bold has not decided yet; load it with `gpubid reload`, or start `gpubid run`" in said
    schema = Path((place / "strategies/bold.toml").read_text().partition("\n")[0].removeprefix("#:schema "))
    assert schema.is_absolute()
    assert json.loads(schema.read_text())["oneOf"]
    page = (place / "tuning" / "bold" / "side-by-side.html").read_text()
    assert "bold" in page
    assert "held out" in page
    text = (place / "agent.toml").read_text()
    assert text.startswith("# mine\n")
    assert "# fast" in text
    assert 'shadow = ["bold"]' in text
    assert 'directory = "strategies"' in text

    rehearse()
    said = tune("bold")
    assert "useful h" in said
    assert "it may be promoted after 24 h; run this again then" in said
    assert "has not been in the shadow for 24 h; wait, or overrule with --force" in tune("bold", "--promote", code=1)
    assert "next: gpubid tune bold --promote" in tune("bold", "--after", "1")
    said = tune("bold", "--after", "1", "--promote", "--force")
    assert "7 promoted: train runs on bold once you load it: gpubid reload" in said
    text = (place / "agent.toml").read_text()
    assert 'strategy = "bold"' in text
    assert "shadow" not in text
    checked = CliRunner().invoke(main.app, ["check"])
    assert checked.exit_code == 0, checked.output
    assert "7 promoted: done" in tune("bold", "--promote")
    steps = [json.loads(file.read_text()) for file in sorted((place / "tuning" / "bold").glob("*.json"))]
    assert [step["step"] for step in steps] == list(STEPS)
    assert all(step["digest"] and step["seed"] == 0 and step["data"] for step in steps)


def test_hours_that_other_numbers_were_in_the_shadow_promote_no_new_ones(shadowed: Path) -> None:
    place = shadowed
    text = (place / "tuning" / "bold" / "bold.toml").read_text()
    (place / "tuning" / "bold" / "bold.toml").write_text(text.replace("least_gain = 0.05", "least_gain = 0.07"))
    for file in ("4-file.json", "5-shadow.json", "6-day.json"):
        (place / "tuning" / "bold" / file).unlink()
    said = tune("bold", "--after", "1")
    assert "6 day: bold is in the shadow of train with other numbers, since 2026-07-27" in said
    assert "load these with `gpubid reload`, and run this again after a day" in said
    before = (place / "agent.toml").read_text()
    assert "bold has not been in the shadow for 1 h" in tune("bold", "--after", "1", "--promote", code=1)
    assert (place / "agent.toml").read_text() == before
    assert not (place / "tuning" / "bold" / "6-day.json").exists()
    shutil.rmtree(place / "kept")
    rehearse()
    assert "next: gpubid tune bold --promote" in tune("bold", "--after", "1")


@pytest.mark.nightly
def test_a_day_record_of_other_numbers_promotes_no_new_ones(shadowed: Path) -> None:
    place = shadowed
    text = (place / "tuning" / "bold" / "bold.toml").read_text()
    (place / "tuning" / "bold" / "bold.toml").write_text(text.replace("least_gain = 0.05", "least_gain = 0.07"))
    (place / "tuning" / "bold" / "4-file.json").unlink()
    shutil.rmtree(place / "kept")
    before = (place / "agent.toml").read_text()
    said = tune("bold", "--after", "1", "--promote", code=1)
    assert "6 day: bold has not decided yet" in said
    assert "bold has not been in the shadow for 1 h" in said
    rehearse()
    said = tune("bold", "--promote", code=1)
    assert "it may be promoted after 24 h; run this again then" in said
    assert "bold has not been in the shadow for 24 h" in said
    assert (place / "agent.toml").read_text() == before


def test_a_promotion_of_other_numbers_is_no_promotion_of_these(shadowed: Path) -> None:
    place = shadowed
    assert "7 promoted: train runs on bold" in tune("bold", "--after", "1", "--promote", "--force")
    record = place / "tuning" / "bold" / "7-promoted.json"
    first = record.read_text()
    own = place / "strategies" / "bold.toml"
    own.write_text(own.read_text().replace("least_gain = 0.05", "least_gain = 0.07"))
    said = tune("bold", "--after", "1", "--promote", code=1)
    assert "7 promoted: done" not in said
    assert f"was promoted {json.loads(first)['at'][:16]} with other numbers than those of strategies/bold.toml" in said
    assert "strategies/bold.toml was changed since it was tuned" in said
    assert record.read_text() == first
    assert "7 promoted: train runs on bold" in tune("bold", "--after", "1", "--promote", "--force")
    second = json.loads(record.read_text())
    assert second["numbers"] != json.loads(first)["numbers"]
    assert "7 promoted: done" in tune("bold", "--promote")


@pytest.mark.nightly
def test_what_is_done_is_not_done_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def searched_again(*_: object) -> None:
        raise AssertionError("it searched again")

    monkeypatch.setattr(number_search, "tune", searched_again)
    tune("bold")
    before = {file: file.read_bytes() for file in (place / "tuning" / "bold").glob("*.json")}
    tune("bold")
    assert {file: file.read_bytes() for file in before} == before


@pytest.mark.parametrize(
    ("held_out", "says"),
    [
        ({"difference": 0.2}, "held out, the tuned numbers are worse"),
        ({"difference": 0.0}, "held out, the tuned numbers are no better"),
        ({"difference": -0.2, "tuned_late": 1, "shipped_late": 0}, "held out, the tuned numbers are worse"),
    ],
)
def test_numbers_that_are_no_better_held_out_are_not_written(place: Path, held_out: dict[str, Any], says: str) -> None:
    judged(place, **held_out)
    before = (place / "agent.toml").read_text()
    said = tune("bold", code=1)
    assert f"nothing is written: {says}" in said
    assert "write them anyway with --force" in said
    assert not (place / "strategies").exists()
    assert (place / "agent.toml").read_text() == before
    assert "4 file: strategies/bold.toml" in tune("bold", "--force")
    record = json.loads((place / "tuning" / "bold" / "4-file.json").read_text())
    assert record["is_forced"] is True


@pytest.mark.nightly
def test_what_was_begun_otherwise_is_refused_and_may_begin_anew(place: Path) -> None:
    assert "was begun with --seeds 1-4; leave that out" in tune("bold", "--seeds", "1-5", code=2)
    tune("bold", "--seeds", "1-4")
    said = tune("bold", *SMALL[2:], "--seeds", "5-8", "--again", code=None)
    assert "begins again; the records so far are in tuning/bold." in said
    assert json.loads((place / "tuning" / "bold" / "1-data.json").read_text())["asked"]["seeds"] == "5-8"
    (aside,) = (place / "tuning").glob("bold.*")
    assert (aside / "2-search.json").exists()


@pytest.mark.nightly
def test_a_number_that_cannot_be_searched_is_refused_before_anything_is_written(unconfigured: Path) -> None:
    """The file of its request refused every other one, and its message named no way on."""
    said = tune("other", *SMALL[:-1], "ceiling,nope", code=2)
    assert "nope cannot be searched; numbers with two bounds can: " in said
    assert not list(unconfigured.glob("tuning/other/*.json"))


def test_the_days_are_those_of_the_own_workload_and_a_changed_one_is_refused(place: Path) -> None:
    record = json.loads((place / "tuning" / "bold" / "1-data.json").read_text())
    assert record["asked"]["workload"] == "train"
    assert "1x RTX 4090 at $0.4500/h or less" in record["data"]["workload"]
    assert "was begun with --workload train" in tune("bold", "--workload", "other", code=2)
    (place / "tuning" / "bold" / "2-search.json").unlink()
    text = (place / "agent.toml").read_text()
    (place / "agent.toml").write_text(text.replace("max_price = 0.45", "max_price = 0.30"))
    said = tune("bold", code=2)
    assert "the workload train has changed since tuning/bold was begun; begin again with --again" in said


def test_the_help_names_the_defaults_that_are_used() -> None:
    said = re.sub(r"[^\w.-]+", " ", tune("--help"))
    assert f"one a seed {DEFAULTS['seeds']} by default" in said
    assert f"Trials in a study {DEFAULTS['trials']} by default" in said
    assert f"problem to search on {DEFAULTS['problem']} by default" in said
    assert f"with commas {DEFAULTS['climates']} by default" in said
    assert f"hours of a day {DEFAULTS['hours']:g} by default" in said
    assert f"splits {DEFAULTS['folds']} by default" in said
    assert f"bootstrap {DEFAULTS['seed']} by default" in said


OTHER = "\n[workloads.other]\nimage = 'pytorch/pytorch:latest'\nmax_price = 0.30\nstrategy = 'patient'\n"


def test_another_workload_than_the_one_begun_for_is_refused_before_anything_is_written(place: Path) -> None:
    (place / "agent.toml").write_text(CONFIG.replace("[ledger]", f"{OTHER}[ledger]"))
    tune("bold")
    before = {file: file.read_bytes() for file in place.rglob("*") if file.is_file()}
    for words in (["--workload", "other"], ["--workload", "other", "--promote", "--force"]):
        said = tune("bold", *words, code=2)
        assert "tuning/bold was begun with --workload train; leave that out, or begin again with --again" in said
    (place / "tuning" / "bold" / "5-shadow.json").unlink()
    assert "was begun with --seeds 1-4" in tune("bold", "--seeds", "1-5", code=2)
    assert not (place / "tuning" / "bold" / "5-shadow.json").exists()
    assert "5 shadow: bold is in the shadow of train" in tune("bold")
    assert {file: file.read_bytes() for file in before if file.name != "5-shadow.json"} == {
        file: text for file, text in before.items() if file.name != "5-shadow.json"
    }


def test_a_loop_whose_workload_is_gone_says_so(place: Path) -> None:
    tune("bold")
    (place / "tuning" / "bold" / "5-shadow.json").unlink()
    (place / "agent.toml").write_text(CONFIG.replace("[workloads.train]", "[workloads.other]"))
    assert "agent.toml has no workload train any more; begin again with --again" in tune("bold", code=2)


@pytest.mark.nightly
def test_a_promotion_for_another_workload_than_the_shadow_names_the_command_to_write(unconfigured: Path) -> None:
    place = unconfigured
    (place / "agent.toml").write_text(CONFIG.replace("[ledger]", f"{OTHER}[ledger]"))
    tune("bold", "--workload", "train")
    before = (place / "agent.toml").read_text()
    said = tune("bold", "--workload", "other", "--promote", "--force", code=2)
    assert "bold is in the shadow of train; write gpubid tune bold --workload train --promote" in said
    assert (place / "agent.toml").read_text() == before


@pytest.mark.nightly
def test_from_an_own_file_the_search_says_how_the_shipped_numbers_do(place: Path) -> None:
    (place / "strategies").mkdir()
    (place / "strategies" / "own.toml").write_text('strategy = "patient"\nceiling = 0.5\n')
    said = tune("own", *SMALLER, code=None)
    assert "with the shipped numbers" in said
    assert re.search(r"95 % (not known|\S+ to \S+)\)", said)
    candidate = (place / "tuning" / "own" / "own.toml").read_text()
    assert "# Tuned: on bidding_war, 1-3, 3 runs; study bids/patient/" in candidate
    result = json.loads((place / "tuning" / "own" / "2-search.json").read_text())["result"]
    assert result["shipped"] == {"ceiling": 0.5}
    assert result["held_out_beside_shipped"]["runs"] == result["held_out"]["runs"]


def test_a_record_that_was_changed_by_hand_is_refused(place: Path) -> None:
    file = place / "tuning" / "bold" / "2-search.json"
    file.write_text(file.read_text().replace('"difference"', '"differenze"'))
    assert "2-search.json was changed by hand or cut short; remove it to do this step again" in tune("bold", code=2)


def test_the_workload_in_an_included_file_is_changed_there(place: Path) -> None:
    head, train = CONFIG.split("[workloads.train]")
    (place / "agent.toml").write_text(f'include = ["train.toml"]\n{head}')
    (place / "train.toml").write_text(f"[workloads.train]{train}")
    said = tune("bold")
    assert "5 shadow: bold is in the shadow of train in agent.toml, train.toml" in said
    assert 'shadow = ["bold"]' in (place / "train.toml").read_text()


@pytest.mark.parametrize(
    ("name", "says"),
    [("a/b", "is no name for a strategy"), ("", "is no name for"), ("patient", "is a shipped strategy; name your own")],
)
def test_a_bad_name_is_refused(place: Path, name: str, says: str) -> None:
    before = sorted(place.rglob("*"))
    assert says in tune(name, code=2)
    assert sorted(place.rglob("*")) == before


def test_without_a_configuration_the_file_is_written_and_init_is_named(unconfigured: Path) -> None:
    said = (unconfigured / "said").read_text()
    assert "there is no agent.toml; write one with `gpubid init`, and run this again" in said
    assert (unconfigured / "strategies" / "bold.toml").exists()
