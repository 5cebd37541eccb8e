"""The expected cost in dollars of finishing a live job in time, for each next choice of its slot."""

import math
from dataclasses import dataclass

from agent.decide.deadline import hazards, single_pool_policy
from agent.decide.deadline.slack import Outlook
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.work.decision import Option

ASSUMED_RATIO = 0.6
"""Interruptible price over on-demand price before any was seen: medians of RTX 5090 on one market, $0.322 and $0.535
an hour (public scrape of 2026-01-21)."""


@dataclass(frozen=True, slots=True)
class Job:
    """A whole job on the GPU that on-demand would rent: hours from first sight to deadline, and hours of work."""

    span: float
    work: float


@dataclass(frozen=True, slots=True)
class Held:
    """A slot's state: its tenure, whether it may have interruptible capacity, and how many hours it has had none.

    The age is None for a slot that runs, or that may have capacity.
    """

    tenure: Tenure | None
    is_up: bool
    age: float | None
    loading: float = 0.0
    """Hours that a start of interruptible capacity takes."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per hour: on demand, and of interruptible capacity if known."""

    on_demand: UsdPerHour
    interruptible: UsdPerHour | None


@dataclass(frozen=True, slots=True)
class ExpectedCosts:
    """The choice until the next look, and the expected cost of each possible choice until the work is done."""

    choice: Tenure | None
    options: tuple[Option, ...]

    @property
    def sentence(self) -> str:
        """Return a sentence about the costs."""
        return "expected to finish for " + ", ".join(f"${option.dollars:.2f} {option.name}" for option in self.options)


def of(outlook: Outlook, job: Job, lease: Held, prices: Prices, learned: hazards.Learned) -> ExpectedCosts:
    """Return the choice until the next look, with the costs of each.

    The reserve of the outlook is the time to the next look: a job that waits now waits at least that long.
    """
    at = single_pool_policy.JobState(
        left=outlook.left,
        todo=outlook.todo / outlook.speed,
        tenure=lease.tenure,
        warming=0.0,
        start_on_demand=outlook.start + outlook.restart,
        start_interruptible=max(lease.loading, outlook.start) + outlook.restart,
        gap=outlook.reserve,
    )
    setting = single_pool_policy.setting(at, max(job.span, at.left), job.work, _ratio(prices))
    planned = single_pool_policy.of(setting, learned.hazards)
    belief = _belief(lease, learned)
    costs = planned.costs(at, belief)
    return ExpectedCosts(planned.choose(at, belief), _options(costs, prices.on_demand.dollars))


def _ratio(prices: Prices) -> float:
    if prices.interruptible is None or not prices.on_demand.micros:
        return ASSUMED_RATIO
    return prices.interruptible.micros / prices.on_demand.micros


def _belief(lease: Held, learned: hazards.Learned) -> hazards.Belief:
    """Return the learned belief; of a state that the looks do not share, the slot's own age counts.

    A look counts floors. A slot has no capacity as long as none of them fits its bids.
    """
    known = learned.belief
    if known is not None and known.is_up is lease.is_up:
        return known
    if known is None:
        age = hazards.FIRST_AGE_HOURS if lease.age is None else lease.age
        return hazards.first(learned.hazards, is_up=lease.is_up, age=age)
    return hazards.Belief(lease.is_up, lease.age or 0.0, known.evidence)


def _options(costs: single_pool_policy.Costs, rate: float) -> tuple[Option, ...]:
    named = (("waiting", costs.wait), ("interruptible", costs.interruptible), ("on demand", costs.on_demand))
    return tuple(Option(name, cost * rate) for name, cost in named if cost < math.inf)
