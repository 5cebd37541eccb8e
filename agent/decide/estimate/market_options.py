"""The options of a job on one market: a bid by each strategy, and on demand; unknown figures are named."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.decide.estimate.job import Job
from agent.decide.estimate.option import Estimate, Hazard, Option, estimate
from agent.decide.limits import credit_watch
from agent.decide.pricing import bidding, rival_bids, useful_hour
from agent.decide.pricing.gamma_distribution import Gamma
from agent.domain import money
from agent.domain.market.host import HostRecord
from agent.domain.market.market_rules import ASSUMED, MarketRules, Settlement
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import CheckpointPlace

REACTION_HOURS = 1.0 / 60
"""Hours from an interruption to the next order: a poll and a second look. Assumed."""

RESUME_HOURS = 1.2
"""Median hours from a stop until the same lease runs again, between the recorded 38 % within 45 minutes and 59 % within
90 (103 stopped episodes of July 2026)."""

HOURS_A_MONTH = 720.0


@dataclass(frozen=True, slots=True)
class Bidder:
    """A strategy in an estimate: it bids over the floor by up to `headroom`; None never bids.

    `is_known`: bidding like this is nearly all that the strategy does.
    """

    name: str
    headroom: float | None
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A market in an estimate: equally likely prices of all GPUs together, and our own record of its hosts.

    `hazard` replaces the record. `storage` is dollars per gigabyte and month, `per_gb` dollars per downloaded gigabyte.
    `reliability` and `inet_down` are the least of its hosts. `down` is the hours from an interruption until the job
    runs again. `worth` is what an hour of the job is worth, if that is not `max_price`. `volume` is the price of its
    network volume, in dollars per hour.
    """

    market: str
    asks: tuple[UsdPerHour, ...]
    floors: tuple[UsdPerHour, ...]
    asks_from: str
    floors_from: str
    record: HostRecord
    hazard: float | None = None
    storage: float | None = None
    per_gb: float | None = None
    reliability: float = 0.95
    inet_down: float = 100.0
    down: float | None = None
    max_price: UsdPerHour | None = None
    asks_as_of: str = ""
    floors_as_of: str = ""
    rules: MarketRules = ASSUMED
    worth: UsdPerHour | None = None
    volume: float = 0.0


@dataclass(frozen=True, slots=True)
class Missing:
    """An option that cannot be estimated, and why."""

    name: str
    sentence: str


@dataclass(frozen=True, slots=True)
class _Way:
    name: str
    tenure: Tenure
    rates: tuple[UsdPerHour, ...]
    hazard: Hazard
    priced: str
    unknown: tuple[str, ...] = ()
    limit: UsdPerHour | None = None


def weigh(job: Job, place: Place, bidders: Sequence[Bidder]) -> list[Estimate | Missing]:
    """Return the cost of a job on one market, by each strategy."""
    return [_on_demand(job, place, one) if one.headroom is None else _bid(job, place, one) for one in bidders]


def _on_demand(job: Job, place: Place, bidder: Bidder) -> Estimate | Missing:
    name = f"{place.market}, {bidder.name}"
    if not place.asks and not place.rules.sells_on_demand:
        sentence = f"{place.market} sells nothing on demand, and reserves for a term at a price that is not recorded"
        return Missing(name, sentence)
    if not place.asks:
        return Missing(name, f"no on-demand price is known: {place.asks_from}")
    hazard = Hazard(0.0, host=_host(place))
    way = _Way(name, Tenure.ON_DEMAND, place.asks, hazard, place.asks_from, _dear(place, place.asks))
    return estimate(job, _option(job, place, way))


def _bid(job: Job, place: Place, bidder: Bidder) -> Estimate | Missing:
    """Return the estimate at the strategy's cheapest opening bid, chosen as the strategy itself would."""
    name = f"{place.market}, {bidder.name}"
    if not place.floors:
        return Missing(name, f"no floor is known: {place.floors_from}")
    if place.rules.has_limits:
        return _under_limit(job, place, bidder, name)
    # A listed price is taken as it is: nothing is bid over it.
    shares = (0.0,) if place.rules.is_listed else bidding.ladder(bidder.headroom or 0.0)
    tried = [estimate(job, _option(job, place, _at(place, bidder, name, share))) for share in shares]
    return min(tried, key=lambda one: (one.dollars is None, one.dollars or one.dollars_least))


def _under_limit(job: Job, place: Place, bidder: Bidder, name: str) -> Estimate | Missing:
    """Return the estimate of a bid that is the value of the hour, at the prices to win that it reaches."""
    limit = _limit(job, place)
    rates = tuple(rate for rate in place.floors if limit is None or rate <= limit)
    if not rates:
        return Missing(name, f"every known price to win is above the limit of {limit}: a bid waits, at no known price")
    over = 0.0 if limit is None else max(limit.micros * len(rates) / sum(rate.micros for rate in rates) - 1.0, 0.0)
    way = _at(place, bidder, name, over)
    notes = [note for note in (_waits(place, rates), _no_limit(limit)) if note]
    priced = f"{place.floors_from}; the price to win is paid, not the bid"
    way = replace(way, rates=rates, priced=priced, unknown=(*_only(bidder), *notes), limit=limit)
    return estimate(job, _option(job, place, way))


def _limit(job: Job, place: Place) -> UsdPerHour | None:
    """Return the value of an hour, at most the highest price less the disk; None if neither is known."""
    disk = money.per_hour(round((place.storage or 0.0) * job.disk_gb / HOURS_A_MONTH, 6))
    known = [place.worth, None if place.max_price is None else place.max_price - disk]
    return min((rate for rate in known if rate is not None), default=None)


def _waits(place: Place, rates: Sequence[UsdPerHour]) -> str:
    share = 1.0 - len(rates) / len(place.floors)
    said = f"the price to win is above the limit {share:.0%} of the time; the bid then waits, which is not counted"
    return said if share > 0 else ""


def _no_limit(limit: UsdPerHour | None) -> str:
    return "" if limit is not None else "no limit is known: give max_price or value_per_hour"


def _only(bidder: Bidder) -> tuple[str, ...]:
    return () if bidder.is_known else ("only this strategy's bids near the floor are counted, not its other decisions",)


def _at(place: Place, bidder: Bidder, name: str, share: float) -> _Way:
    losses, hours = useful_hour.MARKET_HAZARD_PRIOR
    posterior = Gamma(losses + place.record.market_losses, hours + place.record.bid_seconds / 3600)
    law = rival_bids.learned(place.record)
    hazard = Hazard(posterior if place.hazard is None else place.hazard, law.losing_share(share), host=_host(place))
    rates = tuple(floor.scaled(1.0 + share) for floor in place.floors)
    how = "the listed price is paid" if place.rules.is_listed else f"bid {share:.0%} over it"
    priced = f"{place.floors_from}; {how}"
    return _Way(name, Tenure.INTERRUPTIBLE, rates, hazard, priced, (*_only(bidder), *_dear(place, rates)))


def _dear(place: Place, rates: Sequence[UsdPerHour]) -> tuple[str, ...]:
    if place.max_price is None:
        return ()
    share = sum(rate > place.max_price for rate in rates) / len(rates)
    return (
        (f"prices are above max_price {share:.0%} of the time; waiting for lower ones is not counted",) if share else ()
    )


def _option(job: Job, place: Place, way: _Way) -> Option:
    loading = useful_hour.loading_hours(job.image_gb, place.inet_down, place.record) / useful_hour.start_success(
        place.record
    )
    down = _down(job, place, loading)
    gaps = {"storage": place.storage, "traffic": place.per_gb}
    return Option(
        name=way.name,
        tenure=way.tenure,
        rates=way.rates,
        hazard=way.hazard,
        storage=_storage(job, place),
        per_gb=place.per_gb,
        loading=loading,
        down=down,
        as_of=place.asks_as_of if way.tenure is Tenure.ON_DEMAND else place.floors_as_of,
        cited=(
            way.priced,
            _hazard_note(place, way),
            f"{down * 60:.0f} min from an interruption until it runs again",
            *([f"the network volume's ${place.volume:.4f}/h while the job lasts"] if place.volume else []),
        ),
        unknown=(
            *(f"{what} is not counted, its price is not known" for what, known in gaps.items() if known is None),
            *way.unknown,
            *([credit_watch.IN_ARREARS.format(place.market)] if place.rules.settlement is Settlement.ARREARS else []),
        ),
        limit=way.limit,
    )


def _storage(job: Job, place: Place) -> float | None:
    """Return the price of the disk and of the network volume, in dollars per hour; None if neither is known."""
    if place.storage is None:
        return place.volume or None
    return place.storage * job.disk_gb / HOURS_A_MONTH + place.volume


def _down(job: Job, place: Place, loading: float) -> float:
    if place.down is not None:
        return place.down
    return REACTION_HOURS + (RESUME_HOURS if job.place is CheckpointPlace.DISK else loading)


def _host(place: Place) -> float:
    return useful_hour.host_hazard(place.reliability, place.record)


def _hazard_note(place: Place, way: _Way) -> str:
    """Return a note on the expected rate of interruptions, and its source."""
    rates = f"{way.hazard.mean:.3f} interruptions per running hour, {way.hazard.host:.3f} of them the host's own"
    if way.tenure is Tenure.ON_DEMAND:
        watched = place.record.running_seconds / 3600
        return f"{rates} (reliability {place.reliability:g}, {watched:.1f} h of our own record)"
    if place.hazard is not None:
        return f"{rates} (given: {place.hazard:g} at the floor)"
    hours = place.record.bid_seconds / 3600
    if not hours:
        return f"{rates} (assumed: 0.15 an hour at the floor, no record of our own)"
    return f"{rates} (our record: {place.record.market_losses:.1f} losses in {hours:.1f} h, with 1.8 in 12 h assumed)"
