"""The view of a strategy, and its proposals."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar, get_args, get_origin

import pydantic
from pydantic.fields import FieldInfo

from agent.decide.deadline import availability_by_market, hazards
from agent.decide.deadline.deadline_progress import Task
from agent.decide.pricing import useful_hour
from agent.decide.pricing.rival_bids import ASSUMED, Rivals
from agent.domain.market.host import UNSEEN, HostKey, HostRecord
from agent.domain.market.interruption import Loss
from agent.domain.market.market_rules import ASSUMED as ASSUMED_RULES
from agent.domain.market.market_rules import MarketRules
from agent.domain.market.offer import Offer
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.warm_time import WarmTime
from agent.domain.work.decision import Reason
from agent.domain.work.workload import Workload

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
NEVER = timedelta.max
_CENTURY = timedelta(days=36525)
_LONGEST_TEXT = 31


def duration(text: object) -> timedelta:
    """Return the duration of "90s", "15m", "1h30m", "2d" or "never".

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(text, timedelta):
        return text
    if text == "never":
        return NEVER
    match_ = _DURATION.fullmatch(text) if isinstance(text, str) and text and len(text) <= _LONGEST_TEXT else None
    if match_ is None or not any(match_.groups()):
        raise ValueError('write a duration such as "90s", "15m", "1h30m", "2d" or "never"')
    days, hours, minutes, seconds = (int(part or 0) for part in match_.groups())
    if days + hours / 24 > _CENTURY.days:
        raise ValueError('longer than a century; write "never"')
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


Duration = Annotated[timedelta, pydantic.BeforeValidator(duration)]
Auto = Literal["auto"]
AUTO: Auto = "auto"
"""A number that follows from what an hour of the workload is worth."""


class Params(pydantic.BaseModel):
    """The numbers of a strategy: frozen, bounded, each with a description that its TOML repeats for operators."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    unvalued: ClassVar[Mapping[str, float]] = {}
    """What "auto" is, by key, while the workload does not say what an hour is worth. Chosen in rehearsals."""

    def warm_slots(self, slots: int) -> int:  # noqa: ARG002 - for those that override it
        """Return how many of so many slots of a service are kept warm; 0 if the strategy keeps none warm."""
        return 0

    def warm_target(self) -> float:
        """Return the share of the time in which that many shall be warm; 0 if the strategy has no target."""
        return 0.0

    def kept_free(self) -> tuple[timedelta, timedelta]:
        """Return the times that a deadline job keeps free: (for looking and choosing, for a start of on-demand)."""
        return timedelta(), timedelta()


def number_type(field: FieldInfo) -> tuple[Any, Sequence[Any]]:
    """Return the type and the constraints of a field of Params; of a number that may be "auto", those of the number."""
    for part in get_args(field.annotation):
        if get_origin(part) is Annotated:
            base, *constraints = get_args(part)
            inner = [each.metadata if isinstance(each, FieldInfo) else [each] for each in constraints]
            return base, [one for each in inner for one in each]
    return field.annotation, field.metadata


@dataclass(frozen=True, slots=True)
class Down:
    """A slot without a running lease since `since`. `quotes` are floors of the paused lease's slice since then.

    With `is_announced` the lease still runs, and `since` is when its market ends it: nothing could start it again yet.
    `unverified` says why its bucket does not free its disk; empty if it does, or does not matter. `refused` are the
    kinds of orders that its market has just refused: `resume` or `raise`.
    """

    since: datetime
    quotes: tuple[UsdPerHour, ...] = ()
    unverified: str = ""
    refused: frozenset[str] = frozenset()
    is_announced: bool = False


@dataclass(frozen=True, slots=True)
class SlotView:
    """A strategy's view of one slot."""

    slot: Slot
    """The slot."""
    lease: Lease | None
    """Its lease; None if it is empty."""
    arriving: Lease | None = None
    """The lease that it is moving to."""
    down: Down | None = None
    """Since when its lease is down, and the floors quoted since; None if it is not down."""
    runs: int = 0
    """The number of leases on which it began to run within the last day."""
    empty_since: datetime | None = None
    """When a slot without a lease was last left, or first asked for."""
    left: str = ""
    """The market on which its last lease ended, empty if it never ran."""
    hours_left: float = math.inf
    """Hours until its lease is released because a window closes; inf if that is not known or never."""

    @property
    def is_start_refused(self) -> bool:
        """Whether the market has just refused the start of its lease, so that other ways are weighed."""
        return self.down is not None and IntentKind.RESUME.value in self.down.refused


@dataclass(frozen=True, slots=True)
class View:
    """A strategy's view: one workload, its slots, and the offers for it."""

    workload: Workload
    """The workload."""
    slots: tuple[SlotView, ...]
    """Its slots that the strategy decides about now."""
    now: datetime
    """The instant, in UTC."""
    has_offers: bool
    """Whether the market was asked lately: without an answer there is no reason to act."""
    ranking: Callable[["Pricing"], Iterator["Candidate"]]
    """Yields fitting offers, best first, each with its reckoning; its argument gives the ways to hold an offer."""
    market_hazard: float
    """Losses to the market per hour, over the fleet's own record."""
    hosts: Mapping[HostKey, HostRecord] = field(default_factory=dict)
    """The record that judges each host."""
    everything: HostRecord = UNSEEN
    """The record of all hosts together."""
    markets: tuple[str, ...] = ()
    """The markets on which it may be rented now."""
    leases: tuple[Lease, ...] = ()
    """All open leases of the workload, also of slots that are not for the strategy now."""
    unseen: frozenset[str] = frozenset()
    """Ids of leases whose market was not listed in this cycle, so that only their last state is known."""
    losses: tuple[Loss, ...] = ()
    """Its interruptions of the last day."""
    task: Task | None = None
    """The work of its deadline, if it has one."""
    learned: hazards.Learned = hazards.UNSEEN
    """The evidence about interruptible capacity from its looks."""
    fastest: float = 0.0
    """DLPerf of the fastest slice of its models; 0 with fewer than two models, or if none was seen yet."""
    by_market: Mapping[str, availability_by_market.Known] = field(default_factory=dict)
    """The evidence about each market from its looks, if a deadline job may use several."""
    rivals: Rivals = ASSUMED
    """The law of rivals' bids, by which headroom avoids losses."""
    rules: Mapping[str, MarketRules] = field(default_factory=dict)
    """The rules of each configured market."""
    warm: WarmTime | None = None
    """How long it had enough warm slots, if its strategy keeps some warm; None before the first record."""

    def starts_by_itself(self, lease: Lease) -> bool:
        """Return whether the market of a lease may start it again without a call."""
        return self.rules.get(lease.market, ASSUMED_RULES).starts_by_itself

    @property
    def limit_markets(self) -> frozenset[str]:
        """The markets where the price paid is not the bid, so that a bid is a limit."""
        return frozenset(name for name, rules in self.rules.items() if rules.has_limits)


class Pricing(Protocol):
    """A strategy's ways to pay for an offer, each as (tenure, bid or ask per hour)."""

    def __call__(self, candidate: Offer, /) -> Sequence[useful_hour.Way]:
        """Return the ways to hold the offer, or none."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """An offer that fits, the way to hold it, and the cost of a useful hour on it."""

    offer: Offer
    way: useful_hour.Way
    reckoning: useful_hour.StayCost


@dataclass(frozen=True, slots=True)
class Proposal:
    """One step that a strategy proposes for a slot. Limits have the last word.

    `kind` None is a hold. A rent names `candidate`; the others name `lease`; a rebid names `bid` too. A pause before a
    move names the move's `candidate`: if that may not be rented, the pause is not made either.
    """

    slot: Slot
    kind: IntentKind | None
    reason: Reason
    candidate: Candidate | None = None
    lease: Lease | None = None
    bid: UsdPerHour | None = None


class Shortlist:
    """A ranking whose candidates are taken only when used: a slot that stays leaves the best one to the next slot."""

    def __init__(self, ranked: Iterator[Candidate]) -> None:
        """Read from `ranked` when the best is first needed."""
        self._ranked = ranked
        self._best: list[Candidate | None] = []

    @property
    def best(self) -> Candidate | None:
        """The best candidate that is not taken yet, or None."""
        if not self._best:
            self._best.append(next(self._ranked, None))
        return self._best[0]

    def used(self, proposal: Proposal) -> Proposal:
        """Return the proposal; if it rents, its candidate is taken and the next one is the best."""
        if proposal.candidate is not None and proposal.kind is IntentKind.RENT:
            self._best.clear()
        return proposal


P_contra = TypeVar("P_contra", bound=Params, contravariant=True)


class Strategy(Protocol[P_contra]):
    """A pure function from a view and numbers to proposals, at most one per slot."""

    params: ClassVar[type[Params]]

    def propose(self, view: View, params: P_contra, /) -> Sequence[Proposal]:
        """Return a proposal for each slot of the view; a slot without one is held."""
        ...


@dataclass(frozen=True, slots=True)
class Tuned:
    """A strategy with its numbers; `digest` names those numbers in the ledger."""

    name: str
    strategy: Strategy[Params]
    params: Params
    digest: str
    source: str = ""
