"""A strategy that knows the future, keeps state or draws lots is caught; the shipped ones are none of these."""

import inspect
import itertools
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from agent import strategy_files
from agent.cli.main import app
from agent.decide.strategy import Params, Proposal, Tuned, View
from agent.domain.work.decision import Reason
from agent.lab.engine import lookahead_check
from agent.lab.engine.memory_market import Exchange
from strategies.ondemand import OnDemand, OnDemandParams

HOUR = timedelta(hours=1)


class Numbers(Params):
    """None."""


class _Honest:
    """Rents what `ondemand` would, where `_may` says so."""

    params: ClassVar[type[Params]] = Numbers

    def propose(self, view: View, _: Params) -> Sequence[Proposal]:
        if self._may(view):
            return OnDemand().propose(view, OnDemandParams())
        return [Proposal(seen.slot, None, Reason("waits", "waits")) for seen in view.slots]

    def _may(self, view: View) -> bool:
        return view.now.minute >= 0


class Seer(_Honest):
    """Reads the course behind the view's back: it rents where capacity will be gone in an hour."""

    def _may(self, view: View) -> bool:
        frame = inspect.currentframe()
        while frame is not None and not isinstance(frame.f_locals.get("market"), Exchange):
            frame = frame.f_back
        assert frame is not None
        return not frame.f_locals["market"].pool.course.capacity(view.now + HOUR)


class Rememberer(_Honest):
    """Keeps its observations of earlier runs, and so knows the future when they begin again."""

    def __init__(self) -> None:
        self._past: dict[Any, int] = {}

    def _may(self, view: View) -> bool:
        key = (view.now, view.workload.kind, view.slots)
        known = self._past.get(key, 0)
        self._past[key] = known + 1
        return known < 2


class Gambler(_Honest):
    """Never answers the same twice."""

    def __init__(self) -> None:
        self._turns = itertools.count()

    def _may(self, _: View) -> bool:
        return next(self._turns) % 2 == 0


def tuned(strategy: Any) -> Tuned:
    return Tuned("mine", strategy, Numbers(), "0")


def test_a_strategy_that_reads_the_future_is_caught_where_it_first_does_otherwise() -> None:
    finding = lookahead_check.check(tuned(Seer()), lookahead_check.drawn()).finding
    assert finding is not None
    assert finding.rule == "another future"
    assert finding.first != finding.then
    assert "rent" in "".join((*finding.first, *finding.then))


def test_a_strategy_that_remembers_earlier_runs_is_caught() -> None:
    finding = lookahead_check.check(tuned(Rememberer()), lookahead_check.drawn(1)).finding
    assert finding is not None
    assert finding.rule in {"another future", "the same course again"}


def test_a_strategy_that_answers_one_view_in_two_ways_is_caught_at_once() -> None:
    verdict = lookahead_check.check(tuned(Gambler()), lookahead_check.drawn(1))
    assert verdict.finding is not None
    assert verdict.finding.rule == "the same view twice"
    assert verdict.futures == 1


@pytest.mark.nightly
def test_an_honest_one_of_the_same_make_passes() -> None:
    verdict = lookahead_check.check(tuned(_Honest()), lookahead_check.drawn(1))
    assert verdict.finding is None
    assert verdict.compared > 500


@pytest.mark.parametrize(
    "name",
    [
        "deadline",
        *(
            pytest.param(each, marks=pytest.mark.nightly)
            for each in sorted(strategy_files.BUILT_IN.keys() - {"deadline"})
        ),
    ],
)
def test_what_is_shipped_decides_by_the_past_alone(name: str) -> None:
    assert lookahead_check.check(strategy_files.load()[name], lookahead_check.drawn(1)).finding is None


def test_the_noise_begins_at_the_cut_and_not_before() -> None:
    (path,) = lookahead_check.drawn(1).values()
    other = lookahead_check._noised(path, 40, "seed")
    assert other.available[:40] == path.available[:40]
    assert other.floors[:40] == path.floors[:40]
    assert other.available[40:] != path.available[40:]
    assert other.floors[40:] != path.floors[40:]


def test_the_verb_ends_with_one_where_a_package_cheats_and_names_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"honest": tuned(_Honest()), "gambler": tuned(Gambler())}
    monkeypatch.setattr(strategy_files, "load", lambda _: known)
    run = CliRunner().invoke
    told = run(app, ["lab", "check", "gambler", "--json"])
    assert told.exit_code == 1
    shown = json.loads(told.stdout)
    assert (shown["ok"], shown["findings"][0]["rule"]) == (False, "the same view twice")
    assert "proposed otherwise" in run(app, ["lab", "check", "gambler"]).stdout
    unknown = run(app, ["lab", "check", "none"])
    assert unknown.exit_code == 2
    assert "gambler, honest" in unknown.stderr
