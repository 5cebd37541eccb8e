"""Cooldowns now in force: of offers and hosts refused lately, and of places that an operator excluded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent.domain.fleet import Fleet
from agent.domain.money import FREE, UsdPerHour
from agent.domain.record import hold
from agent.domain.record.cooldown import Cooldown, CooldownKind, Cooling
from agent.domain.record.hold import OFF_THE_MARKET, Holds, TargetKind
from agent.domain.record.tally import Counted, Tally

OFFER_TAKEN = timedelta(minutes=3)
"""After the market says that somebody else just took an offer: its listing needs this long to show it."""
TAKEN = "the market says it is taken"
"""The ground of that cooldown."""
REFUSED_OFFER = "the refusal "
"""The first words of the ground of an offer's cooldown after another refusal; the market's code follows."""
NO_CAPACITY = frozenset({TAKEN, *(REFUSED_OFFER + code for code in ("no_capacity", "host_full", "not_sold"))})
"""The grounds of an offer's cooldown that say that its capacity is gone, although it is still listed."""
UNDERBID = timedelta(minutes=2)
"""After a bid was too low: the quoted floor is stale, and a new quote is needed."""
REFUSALS_KEPT = timedelta(hours=1)
"""How long bids on one offer that were refused as too low are counted together. None is sent again meanwhile."""
UNDERBID_GROWS = 2
"""Each further refusal makes the offer's cooldown this many times longer, up to `UNDERBID_MOST`."""
UNDERBID_MOST = timedelta(minutes=10)
START_FAILED = timedelta(hours=2)
"""After a host could not start the container: the cause rarely disappears sooner."""
HOST_LOST = timedelta(hours=1)
"""After a host went offline or vanished."""
POOL_LOST = timedelta(minutes=10)
"""After a host of a pool did so: the pool has others. Assumed, so that a loss of the whole pool is not bought again."""
USED_BEFORE = "used_before"
"""The first word of the end reason of a lease whose pool gave it a machine that it was about to let go."""
MACHINE_IDLE = timedelta(seconds=30)
"""The rest of the pool after such a lease: it needs seconds to let the machine go."""
POOL_MISMATCHED = timedelta(minutes=30)
"""After a rent from a pool that was not as ordered: the pool has other hosts, and its market gets a cooldown too."""
RAN_COUNTS = timedelta(days=1)
"""How long a lease on which a slot ran counts against the slot's moves a day."""
HOST_FULL = timedelta(minutes=15)
"""After a host had no free GPU for a paused instance. Assumed: other renters stay for hours, and few leave at once."""
REFUSED_START = "a start that was refused: "
"""The first words of the ground of a `full` cooldown after a refusal; the market's code follows."""
INVALID = "invalid_args"
"""The code for a start that the host will never make, as after the end of its contract."""
OF_THE_REQUEST = frozenset({INVALID, "invalid_price", "refused", "forbidden", "route_gone"})
"""Refusals of the request itself: the same request gets the same answer again."""
OUT_OF_CREDIT = frozenset({"insufficient_credit", "out_of_funds"})
"""Refusals that end by themselves as soon as the account is topped up, also automatically."""
OF_THE_ACCOUNT = frozenset({"missing_billing"}) | OUT_OF_CREDIT
"""Refusals that only a person can end, and that another host would give too."""
OF_OURS = frozenset({"no_credential", "no_guard", "no_workload"})
"""Refusals of gpubid itself, before anything was sent: they say nothing about the offer or its market."""
WITHHELD = "withheld"
"""The code of a write that did not leave, as this daemon could not show that it leads: the next cycle tries again."""
OF_THE_WORK = frozenset({"bad_image"})
"""Refusals of the workload itself: they say nothing about the market."""
OWN_REFUSAL = "a refusal of gpubid itself: "
"""The first words of the ground of a slot's cooldown after such a refusal; its sentence follows."""
OWN_REFUSAL_WAIT = timedelta(minutes=5)
"""The cooldown of a slot after a refusal of `OF_OURS`: a person must act, and each attempt is recorded."""
OF_THE_MOMENT = frozenset({"wrong_state", "not_found"})
"""Refusals that contradict the listing behind the order; soon the listing or the refusal is out of date."""
MOMENT = timedelta(minutes=1)
"""The cooldown of an order after its first refusal of `OF_THE_MOMENT` or `OUT_OF_CREDIT`. It doubles with each further
one, up to `HOST_FULL`."""
UNTAKEN_KEPT = timedelta(minutes=30)
"""Refusals of orders for one lease are counted together until this long after the last one."""
RAISE, LOWER, RESUME = "raise", "lower", "resume"
"""The kinds of orders that get cooldowns. The kind of any other order is its own name."""
UNTAKEN_MOST = 3
"""After this many refusals, a start counts as impossible on its host."""
STARTED_KEPT = timedelta(hours=1)
"""A confirmed start without an effect is ordered again after this long."""
START_PATIENCE = timedelta(minutes=15)
"""How long a confirmed start of a paused lease may wait for its GPUs before its host counts as full. Assumed."""
HOST_LEFT = timedelta(minutes=30)
"""After we left a host for another one: an immediate return would pay for loading twice."""
_PLACES = {
    TargetKind.HOST: CooldownKind.HOST,
    TargetKind.OWNER: CooldownKind.OWNER,
    TargetKind.MARKET: CooldownKind.MARKET,
}


def after_refusals(count: int) -> timedelta:
    """Return the cooldown of an offer that refused this many bids as too low."""
    return min(UNDERBID * int(UNDERBID_GROWS ** min(count - 1, 8)), UNDERBID_MOST)


def is_unrepeated(reason: str) -> bool:
    """Return whether an order on a lease with this refusal is not sent again at the next poll."""
    return reason in OF_THE_REQUEST | OF_THE_ACCOUNT | OF_THE_MOMENT


def class_of(ground: str) -> frozenset[str]:
    """Return the refusals that have the same kind of cause as `ground` and are counted together with it."""
    classes = (OF_THE_REQUEST, OF_THE_ACCOUNT, OF_THE_MOMENT)
    return next((each for each in classes if ground in each), frozenset({ground}))


def is_in_cooldown(refused: Tally, now: datetime) -> bool:
    """Return whether a kind of order that the market refused is still in cooldown."""
    # A top-up is noticed within at most `HOST_FULL`, and after a short want of credit much sooner.
    is_growing = refused.ground in OF_THE_MOMENT | OUT_OF_CREDIT
    rest = min(MOMENT * 2 ** min(refused.count - 1, 8), HOST_FULL) if is_growing else HOST_FULL
    return now < refused.until - UNTAKEN_KEPT + rest


def has_no_way(refused: Tally, now: datetime) -> bool:
    """Return whether other ways are weighed while a refused order is in cooldown.

    If the account lacks something, another host does not help. An order that contradicts the listing is first sent
    again.
    """
    is_lasting = refused.ground in OF_THE_MOMENT and refused.count >= UNTAKEN_MOST
    return is_in_cooldown(refused, now) and (is_lasting or refused.ground in OF_THE_REQUEST)


@dataclass(frozen=True, slots=True)
class InForce:
    """The operator holds, cooldowns and tallies in force at one instant."""

    holds: Holds = field(default_factory=dict)
    cooling: Cooling = field(default_factory=dict)
    """The cooldowns; a place that an operator excluded counts as in cooldown too."""
    tallies: Mapping[tuple[Counted, str, str], Tally] = field(default_factory=dict)
    """The tallies by their kind, their subject, and the place where they happened."""

    def why_in_cooldown(self, kind: CooldownKind, key: str) -> str | None:
        """Return the ground of a cooldown, or None if there is none."""
        return self.cooling.get(kind, {}).get(key)

    def tallies_of(self, counted: Counted, of: str) -> tuple[Tally, ...]:
        """Return the tallies of one kind for the subject `of`, one for each place."""
        return tuple(tally for (what, whom, _), tally in self.tallies.items() if (what, whom) == (counted, of))

    @property
    def refused_bids(self) -> Mapping[str, UsdPerHour]:
        """The highest bid on each offer, by its key, that was refused as too low."""
        refused: dict[str, UsdPerHour] = {}
        for what, offer, bid in self.tallies:
            if what is Counted.UNDERBID and bid:
                refused[offer] = max(UsdPerHour(int(bid)), refused.get(offer, FREE))
        return refused


def without_capacity(fleet: Fleet) -> Cooling:
    """Return the cooldowns of offers that refused a rent because their capacity is gone."""
    found = cooling(fleet.cooldowns, {}, fleet.now).get(CooldownKind.OFFER, {})
    return {CooldownKind.OFFER: {key: ground for key, ground in found.items() if ground in NO_CAPACITY}}


def in_force(fleet: Fleet) -> InForce:
    """Return the operator holds, cooldowns and tallies of a fleet that are in force."""
    holds = hold.in_force(fleet.holds, fleet.now)
    counted = (tally for tally in fleet.tallies if not tally.is_over(fleet.now))
    tallies = {(tally.counted, tally.of, tally.where): tally for tally in counted}
    return InForce(holds, cooling(fleet.cooldowns, holds, fleet.now), tallies)


def cooling(cooldowns: Iterable[Cooldown], holds: Holds, now: datetime) -> Cooling:
    """Return the grounds of the cooldowns in force at `now`, by kind and key."""
    found: dict[CooldownKind, dict[str, str]] = {}
    for rest in cooldowns:
        if not rest.is_over(now):
            found.setdefault(rest.kind, {})[rest.key] = rest.ground
    for word in OFF_THE_MARKET:
        for (held_by, target), given in holds.items():
            if held_by is word and target.kind in _PLACES:
                found.setdefault(_PLACES[target.kind], {}).setdefault(target.name, f"a {word} by {given.ground}")
    return found
