"""Paid looks by hand, and the runs from which the rate rule learns."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from agent.decide.deadline import multi_pool_policy
from agent.domain.market.tenure import Tenure
from agent.lab.jobs import tick_engine
from agent.lab.jobs.job_terms import HOUR, Course, JobCase, Terms, Window
from agent.lab.jobs.tick_engine import NOTHING, Choice, Sight
from agent.lab.pools import own_kernel
from agent.lab.pools.known_runs import KnownRuns
from agent.lab.pools.paid_probes import PaidProbes

HERE, THERE = Choice(Tenure.INTERRUPTIBLE, 0), Choice(Tenure.INTERRUPTIBLE, 1)
PRICES = (1.2, 3.0)


def case(up: list[tuple[bool, bool]], tick: int = HOUR // 2) -> JobCase:
    """Return a long job over two pools, in ticks of half an hour."""
    names = ("us-east-1a", "us-east-1c")
    terms = Terms(names, tick, 100 * HOUR, 200 * HOUR, 0, np.zeros((2, 2)))
    spot = np.tile(np.array(PRICES), (len(up), 1))
    return JobCase("c", "c", "g", terms, Window(names, tick, 0, Course(np.array(up), spot, spot * 3)))


@dataclass
class Told:
    """Takes the given choices and keeps what it saw."""

    plan: list[Choice]
    seen: list[tuple[bool, ...]] = field(default_factory=list)

    def choose(self, sight: Sight) -> Choice:
        """Return the next choice."""
        self.seen.append(tuple(sight.up))
        return self.plan[len(self.seen) - 1]


def test_a_granted_request_that_is_not_kept_costs_a_minute_and_a_refused_one_nothing() -> None:
    paying = PaidProbes(Told([NOTHING, HERE]))
    tick_engine.play(case([(True, False), (True, True)]), paying)
    # Tick 0: pool 0 is granted and not kept. Tick 1: pool 0 is kept, pool 1 is granted and not kept.
    assert paying.dollars == pytest.approx((PRICES[0] + PRICES[1]) / 60)


def test_while_an_instance_runs_the_others_are_asked_once_an_hour() -> None:
    policy = Told([HERE] * 5)
    up = [(True, False), (True, True), (True, True), (True, False), (True, False)]
    paying = PaidProbes(policy)
    tick_engine.play(case(up), paying)
    # Looks at 0 h, 1 h and 2 h. Pool 1 is asked and granted at 1 h alone.
    assert policy.seen == [(True, False), (True, False), (True, True), (True, True), (True, False)]
    assert paying.dollars == pytest.approx(PRICES[1] / 60)


def test_a_choice_of_a_pool_that_was_lost_since_the_look_changes_nothing() -> None:
    policy = Told([HERE, THERE, HERE])
    run = tick_engine.play(case([(True, True), (True, False), (True, False)]), PaidProbes(policy))
    assert run.choices == (HERE, HERE, HERE)
    assert policy.seen[1:] == [(True, True), (True, False)]


def test_a_loss_of_the_running_instance_is_seen_at_once() -> None:
    policy = Told([HERE, NOTHING, NOTHING])
    tick_engine.play(case([(True, False), (False, True), (False, True)]), PaidProbes(policy))
    assert policy.seen == [(True, False), (False, True), (False, True)]


def test_ours_counts_the_next_look_as_a_cost_of_waiting_if_looks_are_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    costs: list[float] = []

    def keeping(at: multi_pool_policy.JobState, *more: Any) -> multi_pool_policy.Choice:
        costs.append(at.look)
        return choose(at, *more)

    choose = multi_pool_policy.choose
    monkeypatch.setattr(multi_pool_policy, "choose", keeping)
    job = case([(True, True), (True, False)])
    for is_paid in (True, False):
        tick_engine.play(job, own_kernel.policy(job.terms, pays_for_probes=is_paid))
    assert costs == pytest.approx([sum(PRICES) / 60, PRICES[0] / 60, 0.0, 0.0])


def test_a_run_lasts_as_the_runs_that_were_seen_say() -> None:
    runs = KnownRuns(0.5)
    assert runs.lasts(0.0) == math.inf
    for now, is_up in enumerate([True, True, False, True, True, True, True, False]):
        runs.see(float(now), is_up=is_up)
    # Runs of 2 and 4 hours: the hazard rises by 1/2 at 2 and by 1 at 4.
    survived = math.exp(-0.5)
    tail = survived * math.exp(-1.0) * 0.5 / (1 - math.exp(-1.0))
    assert runs.lasts(7.0) == pytest.approx(2 + survived * 2 + tail)
