"""Why nothing fits: how many offers of a market's sample are left after each requirement of a workload.

Invariants:
1. Each offer is dropped at one step: the first requirement that it fails, in the order of `offer_refusal.refusal`,
   or the price.
2. The counts are of a sample: the answer to one wide search.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from agent.decide.pricing import offer_refusal
from agent.decide.strategy import Proposal
from agent.domain.fleet import Fleet
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.work.decision import WAITS
from agent.domain.work.workload import Requirements, Workload

NOTHING_FITS = frozenset({"no_offer", "no_view", WAITS, "waits_for_fallback"})
"""The codes of a hold because no offer was found."""
PRICE = "price"
PRICE_UNKNOWN = "price_unknown"
UNKNOWN = "nobody can say which bid would win: a bid there waits for an auction, without an expected price"


@dataclass(frozen=True, slots=True)
class Step:
    """One requirement that some offers fail."""

    code: str
    """The code of `offer_refusal.refusal`, or `price`."""
    wanted: str
    """The requirement, in words that follow a count."""
    left: int
    """The number of offers that pass this requirement and all before it."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The offers of the sample that would fit if only one requirement were dropped."""

    code: str
    """The requirement's code, as in `Step`."""
    key: str
    """The key of the configuration that sets the requirement."""
    fits: int
    """The number of these offers."""
    cheapest: UsdPerHour
    """The lowest price among those, disk included."""


@dataclass(frozen=True, slots=True)
class Funnel:
    """The offers that are left of the markets' samples after each requirement of a workload."""

    sampled_at: datetime
    """When the oldest of the samples was searched."""
    age: timedelta
    """How long ago that was."""
    rows: int
    """The number of sampled offers."""
    steps: tuple[Step, ...]
    """The requirements that some offers fail, in their order."""
    fits: int
    """The number of offers that meet every requirement."""
    cheapest: UsdPerHour | None
    """The lowest price, disk included, of the offers that meet every requirement except the price; None without any."""
    not_sold: str = ""
    """Why markets sell nothing on demand now, each with the fix; empty if they do."""

    @property
    def sentence(self) -> str:
        """The funnel in one sentence."""
        if not self.rows:
            why = f": {self.not_sold}" if self.not_sold else ""
            return f"the search at {self.sampled_at:%H:%M} UTC found no offer at all{why}"
        counts = ", ".join(f"{step.left} {step.wanted}" for step in self.steps)
        sample = f"of {self.rows} offers sampled at {self.sampled_at:%H:%M} UTC, {counts or f'all {self.fits} fit'}"
        otherwise = "" if self.fits else " that fits otherwise"
        return sample if self.cheapest is None else f"{sample}; the cheapest{otherwise} costs {self.cheapest}"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The words for one requirement, the key that has it, and a function that removes it from a workload."""

    key: str
    words: Callable[[Workload], str]
    without: Callable[[Workload], Workload] | None = None


def _dropped(**changes: object) -> Callable[[Workload], Workload]:
    def without(work: Workload) -> Workload:
        """Return the workload without the requirement."""
        return replace(work, requirements=replace(work.requirements, **changes))  # type: ignore[arg-type]

    return without


def _wants(work: Workload) -> Requirements:
    return work.requirements


_WANTED: Mapping[str, _Wanted] = {
    "not_rentable": _Wanted("", lambda _: "can be rented"),
    "gpus": _Wanted("gpus", lambda work: f"with {_wants(work).gpus} GPU{'s' if _wants(work).gpus > 1 else ''}"),
    "gpu": _Wanted("gpu", lambda work: " or ".join(_wants(work).gpu_models), _dropped(gpu_models=())),
    "vram": _Wanted(
        "min_vram_gb",
        lambda work: f"with {(_wants(work).min_vram_mb or 0) / 1024:g} GB of VRAM",
        _dropped(min_vram_mb=None),
    ),
    "verified": _Wanted("verified", lambda _: "verified", _dropped(verified_only=False)),
    "network_volume": _Wanted(
        "network_volume",
        lambda work: f"where network volume {_wants(work).network_volume} is",
        _dropped(network_volume=""),
    ),
    "datacenter_unknown": _Wanted(
        "datacenter", lambda _: "whose market shows whether they are in a data centre", _dropped(datacenter_only=False)
    ),
    "datacenter": _Wanted("datacenter", lambda _: "in a data centre", _dropped(datacenter_only=False)),
    "reliability": _Wanted(
        "min_reliability", lambda work: f"of reliability {_wants(work).min_reliability}", _dropped(min_reliability=None)
    ),
    "inet_down": _Wanted(
        "min_inet_down",
        lambda work: f"with {_wants(work).min_inet_down_mbps or 0:g} Mb/s down",
        _dropped(min_inet_down_mbps=None),
    ),
    "keeps_no_disk": _Wanted(
        "checkpoint at", lambda _: "whose disk outlives a loss", lambda work: replace(work, may_lose_disk=True)
    ),
    "no_ports": _Wanted("ready", lambda _: "whose ports can be reached"),
    "disk": _Wanted(
        "disk_gb", lambda work: f"with {work.disk_gb:g} GB of disk", lambda work: replace(work, disk_gb=0.0)
    ),
    "region": _Wanted("regions", lambda work: f"in {' or '.join(_wants(work).regions)}", _dropped(regions=())),
    "ends_soon": _Wanted("min_end_ahead", lambda work: f"that stay another {_wants(work).min_end_ahead}"),
    "host_held": _Wanted("", lambda _: "on hosts that hold no lease of ours"),
    "cooldown": _Wanted("", lambda _: "not in cooldown"),
    PRICE_UNKNOWN: _Wanted("", lambda _: "with a known price"),
    PRICE: _Wanted("max_price", lambda work: f"at {work.prices}"),
}


def of(fleet: Fleet, work: Workload, taken: offer_refusal.Unavailable, closed: Collection[str] = ()) -> Funnel | None:
    """Return the funnel of a workload over the last samples of its markets; None if there is no sample.

    `closed` are its fallback markets that are not used yet.
    """
    used = [view for name, view in fleet.markets.items() if work.may_use(name) and name not in closed]
    views = [view for view in used if view.sampled_at is not None]
    if not views:
        return None
    rows = [row for view in views for row in view.sample]
    codes = [_failed(row, work, fleet.now, taken) for row in rows]
    failed = Counter(codes)
    prices = [_price(row, work) for row, code in zip(rows, codes, strict=True) if code in {"", PRICE}]
    sampled_at = min(view.sampled_at for view in views if view.sampled_at is not None)
    return Funnel(
        sampled_at=sampled_at,
        age=fleet.now - sampled_at,
        rows=len(rows),
        steps=_steps(failed, len(rows), work),
        fits=failed[""],
        cheapest=min((price for price in prices if price is not None), default=None),
        not_sold="; ".join(view.not_sold[Tenure.ON_DEMAND] for view in views if Tenure.ON_DEMAND in view.not_sold),
    )


def _rows(fleet: Fleet, work: Workload) -> list[Offer]:
    return [row for name, view in fleet.markets.items() if work.may_use(name) for row in view.sample]


def _failed(row: Offer, work: Workload, now: datetime, taken: offer_refusal.Unavailable) -> str:
    """Return the code of the first requirement that an offer fails, or an empty text."""
    why = offer_refusal.refusal(row, work, now, taken)
    if why is not None:
        return why.code
    if row.is_price_unknown:
        return PRICE_UNKNOWN
    price = _price(row, work)
    return "" if price is not None and price <= work.price_of(row.gpu) else PRICE


def _price(row: Offer, work: Workload) -> UsdPerHour | None:
    """Return the lowest possible hourly cost of an offer, by bid or on demand, disk included."""
    known = [rate for rate in (row.floor, row.ask) if rate is not None and not row.is_price_unknown]
    return min(known) + row.disk_rate(work.disk_gb) if known else None


def _steps(failed: Mapping[str, int], rows: int, work: Workload) -> tuple[Step, ...]:
    steps: list[Step] = []
    for code, wanted in _WANTED.items():
        if failed.get(code):
            rows -= failed[code]
            steps.append(Step(code, wanted.words(work), rows))
    return tuple(steps)


def relaxed(fleet: Fleet, work: Workload, taken: offer_refusal.Unavailable) -> Relaxed | None:
    """Return the requirement whose removal alone lets the most offers fit; among equals, the one with the lowest price.

    Return None if no single removal helps. It checks every offer again for each requirement, so it is for a person, not
    for a plan.
    """
    rows = _rows(fleet, work)
    failing = {_failed(row, work, fleet.now, taken) for row in rows}
    found = [
        Relaxed(code, wanted.key, len(prices), min(prices))
        for code, wanted in _WANTED.items()
        if code in failing and (prices := _prices_without(code, rows, work, fleet.now, taken))
    ]
    return max(found, key=lambda each: (each.fits, -each.cheapest.micros), default=None)


def _prices_without(
    code: str, rows: list[Offer], work: Workload, now: datetime, taken: offer_refusal.Unavailable
) -> list[UsdPerHour]:
    without = _WANTED[code].without
    if code != PRICE and without is None:
        return []
    relaxed = work if without is None else without(work)
    fitting = (row for row in rows if offer_refusal.refusal(row, relaxed, now, taken) is None)
    prices = ((row.gpu, price) for row in fitting if (price := _price(row, work)) is not None)
    return [price for model, price in prices if code == PRICE or price <= work.price_of(model)]


def finds_nothing(proposal: Proposal) -> bool:
    """Return whether a proposal is a hold because no offer was found."""
    return proposal.kind is None and proposal.reason.code in NOTHING_FITS


def unread(fleet: Fleet, work: Workload) -> Iterator[str]:
    """Yield why no search was made on markets that the workload may use: their last listing could not be read."""
    for name, view in fleet.markets.items():
        if view.trouble and work.may_use(name):
            yield f"{name} cannot be read: {view.trouble}"


def explained(proposal: Proposal, found: Funnel | None, closed: Iterable[str] = ()) -> Proposal:
    """Return a proposal; if it found nothing, with the number of sampled offers left after each requirement.

    `closed` are the sentences about markets that are not used yet, or that cannot be read.
    """
    if not finds_nothing(proposal):
        return proposal
    sentence = "; ".join((_with_counts(proposal.reason.sentence, found), *closed))
    return replace(proposal, reason=replace(proposal.reason, sentence=sentence))


def _with_counts(sentence: str, found: Funnel | None) -> str:
    if found is None:
        return sentence
    # The sample may be older than the searches, and a strategy may pay a share of the price: on demand, or by speed.
    less = "the strategy pays less for it, as some do on demand and for slow GPUs"
    but = f"; by now it is gone, or {less}" if found.fits else ""
    return f"{sentence}: {found.sentence}{but}"
