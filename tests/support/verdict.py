"""Conditions of every rehearsal in every climate, judged from its figures and from the ledger's own events."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from agent.cli.rehearsing.rehearsal import Rehearsal
from agent.domain.market.interruption import Cause
from agent.domain.record.event import Event
from agent.domain.work.decision import SPARE, WAITS
from agent.markets.runpod.evidence.silence import SILENCE_SECONDS

SPEND_SHARE = 0.005
SPEND_DOLLARS = 0.01
ZEROS = ("orphans", "double_rents", "over_cap")
ROUNDING_SECONDS = 0.01
"""The tolerance of billed seconds, which are floats summed over thousands of looks."""
UP = frozenset({"lease.running", "lease.resumed"})
DOWN = frozenset(
    {
        "lease.interrupted",
        "lease.paused",
        "lease.missing",
        "lease.gone",
        "lease.offline",
        "lease.exited",
        "lease.failed",
    }
)
OVER = frozenset({"lease.released_by_us", "lease.released", "lease.gone"})
RUNPOD = "runpod"
SILENCE_HOURS = SILENCE_SECONDS / 3600
GIVEN_UP = frozenset({"moved", SPARE, WAITS})
"""Reasons to release a running lease: for a better one, or because no lease is worth more at the time."""


def wrong(told: Rehearsal) -> list[str]:
    """Return the conditions that are not met, one sentence each."""
    return [*_zeros(told), *_spend(told), *_phases(told), *_healthy_releases(told)]


def _zeros(told: Rehearsal) -> Iterator[str]:
    for name in ZEROS:
        if told.figures[name]:
            yield f"{name} is {told.figures[name]}, not 0"


def _spend(told: Rehearsal) -> Iterator[str]:
    """Compare spend with charges: at most the largest of half a per cent, a poll for each turn, and a cent apart.

    Pods on hosts that fell silent count as paid, and the simulated bill leaves them out. That much more is right.
    """
    spend, charged = told.figures["spend"], told.figures["charged"]
    rates = {lease.lease_id: lease.gpu_rate.dollars + lease.disk_rate.dollars for lease in told.leases}
    turned = sum(rates.get(event.lease_id, 0.0) for event in told.events if event.kind.startswith("lease."))
    polls = turned * told.config.poll.total_seconds() / 3600
    allowed = max(SPEND_SHARE * charged, polls, SPEND_DOLLARS)
    if not -allowed <= spend - charged <= allowed + _doubted(told):
        yield f"the ledger says ${spend:.4f}, the market charged ${charged:.4f}"


def _doubted(told: Rehearsal) -> float:
    """Return the most that pods may cost, in dollars, from their host's last report to its next or to their end."""
    leases = {lease.lease_id: lease for lease in told.leases if lease.market == RUNPOD}
    dark: dict[str, datetime] = {}
    hours: dict[str, float] = defaultdict(float)
    last = max((event.at for event in told.events), default=None)
    for event in sorted(told.events, key=lambda one: one.at):
        if event.lease_id in leases and event.cause is Cause.HOST_OFFLINE:
            dark.setdefault(event.lease_id, event.at)
        elif event.kind in UP | OVER and event.lease_id in dark:
            hours[event.lease_id] += (event.at - dark.pop(event.lease_id)).total_seconds() / 3600 + SILENCE_HOURS
    for lease_id, since in dark.items():
        hours[lease_id] += ((last or since) - since).total_seconds() / 3600 + SILENCE_HOURS
    return sum(hours[each] * (leases[each].gpu_rate + leases[each].disk_rate).dollars for each in hours)


def _phases(told: Rehearsal) -> Iterator[str]:
    """Compare every line with the sum of its parts, and their sum with the running time of the metering."""
    for line in told.paid:
        if line.paid != line.loading + line.restoring + line.useful + line.lost:
            yield f"{line.lease_id} on {line.day}: paid {line.paid} us are not loading + restoring + useful + lost"
    for lease_id, seconds in _differing(told):
        yield f"{lease_id}: the time paid by phase differs by {seconds:.3f} s from the time that was billed"


def _differing(told: Rehearsal) -> Iterator[tuple[str, float]]:
    open_leases = {lease.lease_id for lease in told.leases if lease.is_open}
    billed: dict[str, float] = defaultdict(float)
    paid: dict[str, float] = defaultdict(float)
    for spent in told.spend:
        billed[spent.key] += spent.running_seconds
    for line in told.paid:
        paid[line.lease_id] += line.paid / 1e6
    for lease_id in billed.keys() - open_leases:
        if abs(billed[lease_id] - paid[lease_id]) > ROUNDING_SECONDS:
            yield lease_id, paid[lease_id] - billed[lease_id]


def _healthy_releases(told: Rehearsal) -> Iterator[str]:
    """Yield every release of a lease that ran as far as the ledger knew, without one of the allowed reasons."""
    up: set[str] = set()
    for event in told.events:
        if event.kind in UP:
            up.add(event.lease_id)
        elif event.kind in DOWN:
            up.discard(event.lease_id)
        elif _orders_release(event) and event.lease_id in up:
            # The same release may be ordered again until the market confirms it, and then says so.
            up.discard(event.lease_id)
            if event.reason_code not in GIVEN_UP:
                yield f"{event.lease_id} was released while it ran: {event.reason_code}: {event.reason}"


def _orders_release(event: Event) -> bool:
    """Return whether an event says that a release was ordered: it was done, its market took it, or nobody knows."""
    is_open = event.kind in {"intent.accepted", "intent.in_doubt"}
    return event.kind == "lease.released_by_us" or (is_open and event.reason.startswith("release:"))
