"""A decision: one step of a plan with its grounds. A hold is a decision too."""

from dataclasses import dataclass

from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot

SPARE = "spare_not_worth"
"""The code of the reason why a spare slot is left empty, or is released."""
GONE = "gone"
"""The code of the reason why a person ends a lease of which nothing is left."""
WAITS = "waits_for_capacity"
"""The code of the reason why a slot has no lease for now, or releases it: waiting is cheaper."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a calculation: its name, its figure and its unit."""

    name: str
    figure: float
    unit: str


@dataclass(frozen=True, slots=True)
class Option:
    """One considered way: its cost over the horizon, and the terms of it."""

    name: str
    dollars: float
    terms: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason: a code for programs, a sentence for a person, and the calculation."""

    code: str
    sentence: str
    options: tuple[Option, ...] = ()
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """The interval of checkpoints in seconds: for the whole lease, and from each age on, as (age, interval).

    `hazard` is the rate of losses per hour behind it.
    """

    interval: int
    by_age: tuple[tuple[int, int], ...]
    hazard: float


@dataclass(frozen=True, slots=True)
class Rent:
    """Rent `offer` for `slot`; `bid` is None for on-demand. `rate` is the most that it will cost per hour, with disk.

    `advice` is passed to the container, if there is any.
    """

    slot: Slot
    offer: Offer
    tenure: Tenure
    bid: UsdPerHour | None
    rate: UsdPerHour
    reason: Reason
    advice: Advice | None = None
    kept: Lease | None = None
    """The lease whose instance goes on with the slot, so that the market is not asked; None: a new one is rented."""
    is_limit: bool = False
    """Whether the price paid is not the bid, so that the bid is a limit."""
    expected: UsdPerHour | None = None
    """The expected price of the GPUs per hour under a limit; None if it is unknown, or without a limit."""


@dataclass(frozen=True, slots=True)
class Rebid:
    """Change the bid of `lease` to `bid`."""

    lease: Lease
    bid: UsdPerHour
    reason: Reason


@dataclass(frozen=True, slots=True)
class Resume:
    """Start `lease` again on its host."""

    lease: Lease
    reason: Reason


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop `lease` and keep its disk; also cancels a queued start."""

    lease: Lease
    reason: Reason


@dataclass(frozen=True, slots=True)
class Release:
    """End `lease` for good and stop paying."""

    lease: Lease
    reason: Reason


@dataclass(frozen=True, slots=True)
class Hold:
    """Do nothing for `slot`."""

    slot: Slot
    reason: Reason


Decision = Rent | Rebid | Resume | Pause | Release | Hold

KIND: dict[type, IntentKind] = {
    Rent: IntentKind.RENT,
    Rebid: IntentKind.REBID,
    Resume: IntentKind.RESUME,
    Pause: IntentKind.PAUSE,
    Release: IntentKind.RELEASE,
}


def kind_of(decision: Decision) -> IntentKind:
    """Return the kind of the intent of a decision that does something."""
    return IntentKind.REASSIGN if isinstance(decision, Rent) and decision.kept is not None else KIND[type(decision)]


def slot_of(decision: Decision) -> Slot:
    """Return the slot a decision is about."""
    return decision.slot if isinstance(decision, Rent | Hold) else decision.lease.slot


def raises_spend(decision: Decision) -> bool:
    """Return whether a decision may raise our hourly spend."""
    if isinstance(decision, Rebid):
        return decision.bid > decision.lease.bid
    return isinstance(decision, Rent | Resume)
