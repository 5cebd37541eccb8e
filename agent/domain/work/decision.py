"""A decision: one move with its grounds; doing nothing is a decision too."""

from dataclasses import dataclass

from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease
from agent.domain.work.workload import Slot

SPARE = "spare_not_worth"
"""The code of the reason why a slot above the number is left empty, or is given up."""
WAITS = "waits_for_capacity"
"""The code of the reason why a slot holds nothing for now, or gives up what it holds: it is cheaper to wait."""


@dataclass(frozen=True, slots=True)
class Term:
    """One addend of a reckoning: its name, its figure and its unit."""

    name: str
    figure: float
    unit: str


@dataclass(frozen=True, slots=True)
class Option:
    """One way considered: what it would cost over the horizon, and of what that is made."""

    name: str
    dollars: float
    terms: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """Why: a machine code, a sentence for a person, and the reckoning behind it."""

    code: str
    sentence: str
    options: tuple[Option, ...] = ()
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """How often to make a checkpoint, in seconds: all the time, and from each age of the lease on, as (age, interval).

    `hazard` is the losses an hour that it rests on.
    """

    interval: int
    by_age: tuple[tuple[int, int], ...]
    hazard: float


@dataclass(frozen=True, slots=True)
class Rent:
    """Rent `offer` for `slot`; `bid` is None for on-demand. `rate` is the most it will cost per hour, disk included.

    `advice` goes along into the container, where any can be given.
    """

    slot: Slot
    offer: Offer
    tenure: Tenure
    bid: UsdPerHour | None
    rate: UsdPerHour
    reason: Reason
    advice: Advice | None = None


@dataclass(frozen=True, slots=True)
class Rebid:
    """Change the bid of `lease` to `bid`."""

    lease: Lease
    bid: UsdPerHour
    reason: Reason


@dataclass(frozen=True, slots=True)
class Resume:
    """Start `lease` again where it stands."""

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


def slot_of(decision: Decision) -> Slot:
    """Return the slot a decision is about."""
    return decision.slot if isinstance(decision, Rent | Hold) else decision.lease.slot


def raises_spend(decision: Decision) -> bool:
    """Return whether carrying it out may raise what we pay per hour."""
    if isinstance(decision, Rebid):
        return decision.bid > decision.lease.gpu_rate
    return isinstance(decision, Rent | Resume)
