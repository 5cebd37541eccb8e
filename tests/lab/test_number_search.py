"""Tuning: within declared bounds, scored on held-out cases, shared by processes, stopped and resumed."""

import itertools
import json
import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.trial import FrozenTrial, TrialState, create_trial
from pydantic import Field
from typer.testing import CliRunner

from agent import strategy_files
from agent.cli.main import app
from agent.decide.strategy import NEVER, Duration, Params
from agent.lab.bench.comparison import Score
from agent.lab.deadline import deadline_baselines
from agent.lab.traces import walk_forward
from agent.lab.tuning import number_search, search_space, study, tuned_file
from strategies.hedged_rules.params import HedgedParams
from tests.support import postgres

SHIPPED = [pytest.param(one.params, id=name) for name, one in strategy_files.load().items()]
SEARCH = ("--job-hours", "8", "--deadline-hours", "10", "--overhead-hours", "0.2", "--window-hours", "12")
PRICES = ("--stride-hours", "12", "--spot-price", "1", "--on-demand-price", "3")


class Odd(Params):
    """Numbers of all kinds."""

    share: float = Field(default=0.1, gt=0, lt=10)
    count: int = Field(default=3, gt=1, le=9)
    wait: Duration = timedelta(minutes=10)
    never: Duration = NEVER
    is_on: bool = True
    name: str = "text"
    open_end: float = Field(default=1.0, ge=0)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    folder = tmp_path / "zones"
    folder.mkdir()
    for number in range(2):
        up = [int((tick * (number + 3)) % 23 < 11) for tick in range(700)]
        row = {"pool": f"zone-{number}", "gap_seconds": 600, "start": "2026-01-01T00:00:00Z", "available": up}
        (folder / f"{number}.json").write_text(json.dumps(row))
    return folder


def words(traces: Path, storage: str, *more: str) -> list[str]:
    given = ["lab", "tune", "levi", "--problem", "deadline", "--traces", str(traces), "--storage", storage]
    return [*given, *SEARCH, *PRICES, *more]


def run(traces: Path, storage: str, *more: str) -> dict:
    ended = CliRunner().invoke(app, [*words(traces, storage, *more), "--json"])
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout)


def test_what_is_searched_is_read_off_the_declared_bounds() -> None:
    axes = {axis.key: (axis.low, axis.high) for axis in search_space.axes(Odd())}
    assert axes.keys() == {"share", "count", "wait", "never", "is_on"}
    assert axes["wait"] == (0, 80 * 60)
    assert search_space.axes(Odd(), ["count"])[0].key == "count"
    with pytest.raises(ValueError, match="open_end"):
        search_space.axes(Odd(), ["open_end"])


@given(place=st.floats(0, 1))
def test_every_place_is_a_number_that_the_params_take(place: float) -> None:
    for axis in search_space.axes(Odd()):
        value = axis.value(place)
        assert getattr(search_space.applied(Odd(), {axis.key: value}), axis.key) == value


def test_a_number_that_contradicts_another_one_is_not_searched() -> None:
    plain, aimed = HedgedParams(keep_warm=True), HedgedParams(keep_warm=True, target=0.99)
    searched = {axis.key for axis in search_space.axes(plain)}
    assert "short_worth" in searched
    assert "target" not in searched, "a target is what the operator wants, not a number to search"
    assert {axis.key for axis in search_space.axes(aimed)} == searched - {"short_worth"}
    with pytest.raises(ValueError, match="short_worth cannot be searched"):
        search_space.axes(aimed, ["short_worth"])


@pytest.mark.parametrize("shipped", SHIPPED)
def test_what_is_shipped_is_a_place_of_its_own_search(shipped: Params) -> None:
    axes = search_space.axes(shipped)
    assert axes
    for axis in axes:
        back = axis.value(axis.place(axis.shipped))
        given = getattr(shipped, axis.key)
        given = shipped.unvalued[axis.key] if given == "auto" else given
        assert back == (given if given != NEVER else timedelta(days=1)), axis.key


class When:
    """A case of some hours."""

    def __init__(self, first: int, last: int) -> None:
        self.key, self.cluster = f"{first}", f"{first}"
        self.span = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=first), self._end(last))

    def _end(self, last: int) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=last)


@given(
    starts=st.lists(st.integers(0, 500), min_size=8, max_size=40, unique=True),
    length=st.integers(1, 60),
    count=st.integers(1, 4),
)
def test_nothing_is_fitted_on_that_ends_after_what_is_held_out_begins(
    starts: list[int], length: int, count: int
) -> None:
    cases = [When(start, start + length) for start in starts]
    try:
        made = walk_forward.forward(cases, count)
    except ValueError:
        return
    held = list(itertools.chain.from_iterable(fold.held for fold in made))
    assert len(held) == len(set(held))
    for fold in made:
        assert fold.fit
        assert max(cases[place].span[1] for place in fold.fit) <= min(cases[place].span[0] for place in fold.held)


class Switched(Params):
    """One number that counts only while a switch is off, and one that never does."""

    is_on: bool = True
    share: float = Field(default=0.5, ge=0, le=1)
    idle: float = Field(default=0.5, ge=0, le=1)


class Toy:
    """Cases whose cost follows from the numbers."""

    name, baseline, optimum = "toy", "mine", "mine"

    def __init__(self, numbers: Switched) -> None:
        self.numbers = numbers

    def cases(self) -> list[When]:
        return [When(hour, hour + 1) for hour in range(12)]

    def strategies(self) -> list[str]:
        return ["mine"]

    def params(self, _: str) -> Switched:
        return self.numbers

    def with_params(self, _: str, params: Params) -> "Toy":
        assert isinstance(params, Switched)
        return Toy(params)

    def score(self, _: str, case: When) -> Score:
        return Score(float(case.key) + (2.0 if self.numbers.is_on else 1.0 + self.numbers.share))

    def about(self) -> dict:
        return {}

    def digests(self) -> dict:
        return {}


@pytest.mark.nightly
def test_a_number_that_counts_only_under_a_switch_is_searched_and_one_that_never_does_is_not(tmp_path: Path) -> None:
    ends = study.Ends(12, 12)
    order = number_search.Order(f"sqlite:///{tmp_path}/toy.db", ends, folds=1)
    found = number_search.tune(Toy(Switched()), "mine", order)  # type: ignore[arg-type]
    assert found.inert == ("idle",)
    assert found.changed["is_on"] is False
    assert found.held.tuned.mean < found.held.shipped.mean - 0.7
    assert found.held.interval[1] < 0


def test_from_an_own_start_the_shipped_numbers_are_tried_next_and_compared_with(tmp_path: Path) -> None:
    start, shipped = Switched(is_on=False, share=0.9), Switched(is_on=False, share=0.2)
    order = number_search.Order(f"sqlite:///{tmp_path}/toy.db", study.Ends(2, 2), folds=1, beside=shipped)
    found = number_search.tune(Toy(start), "mine", order)  # type: ignore[arg-type]
    assert found.changed["share"] == 0.2
    assert found.held.difference == pytest.approx(0.2 - 0.9)
    assert found.beside is not None
    assert found.beside.cases == found.held.cases
    assert found.beside.difference == pytest.approx(0.0)


def test_a_late_run_is_never_the_better_one() -> None:
    assert number_search._loss(Score(10.0, is_late=True)) > number_search._loss(Score(50.0))


def test_a_late_run_whose_cost_has_the_price_of_being_late_costs_that() -> None:
    assert number_search._loss(Score(10.0, is_late=True, is_priced=True)) == 10.0


def test_what_is_worse_in_nearly_every_part_is_given_up_and_what_is_as_good_is_not() -> None:
    best = [float(place % 7) for place in range(12)]
    assert study.is_worse([score + 1 + place / 100 for place, score in enumerate(best)], best)
    assert not study.is_worse([score - 1 - place / 100 for place, score in enumerate(best)], best)
    assert not study.is_worse([score + (-1) ** place * (1 + place / 100) for place, score in enumerate(best)], best)
    assert not study.is_worse(best, best)
    assert not study.is_worse([9.0] * 3, [1.0] * 3), "too little was seen"


def test_a_search_ends_when_nothing_better_comes(traces: Path, tmp_path: Path) -> None:
    found = run(traces, f"sqlite:///{tmp_path}/study.db", "--trials", "40", "--patience", "3", "--folds", "1")
    assert {part["ended"] for part in found["folds"]} == {"patience"}
    assert all(3 < len(part["trials"]) < 40 for part in found["folds"])
    assert found["folds"][0]["held_out_since"] is not None
    first = found["folds"][-1]["trials"][0]
    assert first["score"] == pytest.approx(found["folds"][-1]["fitted"]["shipped_mean_cost"]), (
        "what is shipped is first"
    )


@pytest.mark.nightly
def test_a_study_is_taken_up_where_it_was_left(traces: Path, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    part = run(traces, storage, "--trials", "2", "--folds", "1")["folds"][-1]["trials"]
    whole = run(traces, storage, "--trials", "4", "--folds", "1")["folds"][-1]["trials"]
    assert whole[: len(part)] == part
    assert len(whole) == 4
    fresh = run(traces, f"sqlite:///{tmp_path}/other.db", "--trials", "4", "--folds", "1")["folds"][-1]["trials"]
    assert fresh == whole, "equal seeds, equal studies"


def test_a_trial_that_ends_after_the_search_did_counts_for_nobody() -> None:
    def trial(number: int, minute: int, value: float) -> FrozenTrial:
        made = create_trial(state=TrialState.COMPLETE, value=value)
        made.number, made.datetime_complete = number, datetime(2026, 1, 1, 0, minute)  # noqa: DTZ001 - as Optuna has it
        return made

    first, second, third = trial(0, 1, 5.0), trial(2, 2, 4.0), trial(1, 3, 1.0)
    ends = study.Ends(2, 9)
    assert ends.closing([first]) == ([first], None)
    assert ends.closing([first, second]) == ends.closing([first, third, second]) == ([first, second], "trials")
    worse = trial(3, 4, 6.0)
    assert study.Ends(9, 1).closing([second, worse, first, third]) == ([first, second, third, worse], "patience")


def test_a_named_study_of_other_cases_is_refused(traces: Path, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    run(traces, storage, "--trials", "1", "--folds", "1", "--study", "mine")
    other = words(traces, storage, "--trials", "1", "--folds", "1", "--study", "mine", "--job-hours", "6")
    ended = CliRunner().invoke(app, other)
    assert ended.exit_code == 1
    assert "name another with --study" in ended.output


def assert_two_share_a_study(traces: Path, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUBID_LAB_STORAGE", storage)
    command = [sys.executable, "-m", "agent", *words(traces, storage, "--trials", "4", "--folds", "1", "--json")]
    at = command.index("--storage")
    del command[at : at + 2]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [each.communicate(timeout=120) for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    found = [json.loads(out) for out, _ in said]
    assert found[0]["tuned"] == found[1]["tuned"]
    assert found[0]["study"] == found[1]["study"]
    assert [part["trials"] for part in found[0]["folds"]] == [part["trials"] for part in found[1]["folds"]]
    for part in found[0]["folds"]:
        numbers = [trial["number"] for trial in part["trials"]]
        assert len(set(numbers)) == len(numbers)
        assert len(numbers) == 4, "the study ends once, not once a process"
    assert postgres.PASSWORD not in "".join(out + err for out, err in said)


@pytest.mark.nightly
def test_two_processes_share_a_study_over_sqlite(traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_two_share_a_study(traces, f"sqlite:///{tmp_path}/study.db", monkeypatch)


@pytest.mark.nightly
@pytest.mark.skipif(not postgres.is_here(), reason="Debian's postgresql is not installed (make nightly installs it)")
def test_two_processes_share_a_study_over_postgresql(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres.running() as storage:
        assert_two_share_a_study(traces, storage, monkeypatch)
        wrong = storage.replace(postgres.PASSWORD, postgres.PASSWORD + "-wr0ng")
        ended = CliRunner().invoke(app, words(traces, wrong))
        assert ended.exit_code == 1
        assert "cannot be used" in ended.output
        assert postgres.PASSWORD not in ended.output


def made(changed: Params) -> number_search.Tuning:
    side = number_search.Side(10.0, 0)
    one = number_search.Compared(4, side, side, -1.0, (-2.0, 0.5))
    part = number_search.Part(
        walk_forward.Fold("all", (0,), (), None), {}, study.Found({}, 1.0, "trials", ()), one, None
    )
    numbers = {key: changed.model_dump()[key] for key in ("slack_share", "return_after")}
    about = {"traces": "zones", "span": ["2026-01-01T00:00:00", "2026-02-01T00:00:00"]}
    return number_search.Tuning("deadline", "name", changed, changed, numbers, (), (), part, one, about)


def test_a_file_keeps_its_comments_and_its_other_numbers() -> None:
    one = strategy_files.installed()["deadline"]
    base = strategy_files.shipped_file(one).read_text()
    params = strategy_files.load()["deadline"].params.model_copy(
        update={"slack_share": 0.25, "return_after": timedelta(minutes=95)}
    )
    first = tuned_file.text(made(params), base)
    again = tuned_file.text(made(params), first)
    assert first == again, "what it comes from is said once"
    before, after = tomllib.loads(base), tomllib.loads(first)
    assert {key for key in before if before[key] != after[key]} == {"slack_share", "return_after"}
    assert after["return_after"] == "1h35m"
    comments = [line for line in base.splitlines() if line.startswith("#")]
    assert [line for line in first.splitlines() if line.startswith("#") and tuned_file.MARK not in line] == comments


def test_what_is_written_can_be_run_on(tmp_path: Path) -> None:
    one = strategy_files.installed()["deadline"]
    params = strategy_files.load()["deadline"].params.model_copy(update={"slack_share": 0.25})
    tuned_file.write(
        tmp_path / "night.toml", tuned_file.text(made(params), strategy_files.shipped_file(one).read_text())
    )
    assert strategy_files.load(tmp_path)["night"].params.model_dump()["slack_share"] == 0.25
    assert [file.name for file in tmp_path.iterdir()] == ["night.toml"]


def test_an_operators_file_is_changed_only_when_told_to(traces: Path, tmp_path: Path) -> None:
    mine, storage = tmp_path / "mine.toml", f"sqlite:///{tmp_path}/study.db"
    mine.write_text('strategy = "levi"\n# by me\nspare_ticks = 7\n')
    ended = CliRunner().invoke(app, words(traces, storage, "--out", str(mine)))
    assert ended.exit_code == 2
    assert "--write" in ended.output
    assert mine.read_text().endswith("spare_ticks = 7\n")
    found = run(
        traces, storage, "--out", str(mine), "--write", "--trials", "3", "--folds", "1", "--keys", "slack_share"
    )
    text = mine.read_text()
    assert "# by me\nspare_ticks = 7\n" in text
    assert tomllib.loads(text)["slack_share"] == found["tuned"]["slack_share"]


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(tuned_file.WriteError):
        tuned_file.write(tmp_path / "nowhere" / "a.toml", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "more",
    [
        ("--keys", "nothing"),
        ("--folds", "20"),
        ("--window-hours", "100"),
        ("--deadline-hours", "100"),
        ("--storage", "mysql://me:secret@there/db"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(traces: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    ended = CliRunner().invoke(app, [*words(traces, f"sqlite:///{tmp_path}/study.db", "--trials", "1"), *more])
    assert ended.exit_code in {1, 2}
    assert ended.output.startswith("gpubid: ")
    assert "secret" not in ended.output


def test_a_strategy_without_numbers_cannot_be_tuned(traces: Path, tmp_path: Path) -> None:
    given = ["greedy" if word == "levi" else word for word in words(traces, f"sqlite:///{tmp_path}/s.db")]
    ended = CliRunner().invoke(app, given)
    assert ended.exit_code == 2
    assert "nothing to tune" in ended.output


def test_a_storage_is_shown_without_who_may_use_it() -> None:
    assert study.shown("postgresql+psycopg://me:pa@ss@host:1/db?password=x") == "postgresql+psycopg://host:1/db"
    assert study.shown("sqlite:////tmp/a.db") == "sqlite:////tmp/a.db"
    assert deadline_baselines.LeviParams().slack_share == 0.1
