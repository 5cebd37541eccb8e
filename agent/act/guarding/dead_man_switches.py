"""The dead man's switches of open leases: where their guards look for the daemon's signs of life."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from agent.domain.market.account_refusal import Refusal
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.work import kept_terms
from agent.domain.work.guard_terms import Bucket
from agent.domain.work.kept_terms import KeptTerms
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection


@dataclass(frozen=True, slots=True)
class Switch:
    """Where the guard of one slot looks for signs of life, and how long it waits for one. None means without end."""

    slot: Slot
    place: Bucket
    folder: str
    after: timedelta | None
    ending: str = "stops"
    """The guard's action on its instance after that wait, as a verb."""
    markets: frozenset[str] = frozenset()
    """The markets of the leases that read the signs."""
    is_guess: bool = False
    """Whether every lease that may read there has an unknown run, so that perhaps none of them does."""

    @property
    def key(self) -> tuple[Bucket, str]:
        """The place of its signs. Two leases of a slot read the same signs."""
        return self.place, self.folder

    def refusal(self, known: Mapping[str, Refusal]) -> Refusal | None:
        """Return the shortest refusal if all of its markets refuse our key, else None."""
        known_markets = [known[market] for market in self.markets if market in known]
        return (
            min(known_markets, key=lambda each: each.lasts)
            if known_markets and len(known_markets) == len(self.markets)
            else None
        )


@dataclass(frozen=True, slots=True)
class Unfound:
    """The switch of an adopted lease whose run is unknown: no sign is known to reach its guard."""

    lease_id: str
    slot: Slot
    place: Bucket
    after: timedelta
    ending: str
    since: datetime
    """When it was adopted. The last sign that its guard saw is older."""


def is_unfound(lease: Lease) -> bool:
    """Return whether the ledger knows neither the rent nor the run of a lease: it was adopted by its label."""
    return lease.guard_run is None and not lease.intent_id


def unfound(known: Recollection, workloads: Iterable[Workload]) -> tuple[Unfound, ...]:
    """Return the switches of the open leases whose run is unknown, as the files have them today."""
    found = []
    for lease, place, terms in _switched(known, workloads):
        if is_unfound(lease) and terms.deadman is not None:
            since = lease.proven_at or lease.opened_at
            found.append(Unfound(lease.lease_id, lease.slot, place, terms.deadman, _ending(terms), since))
    return tuple(found)


def switches(known: Recollection, workloads: Iterable[Workload], fleet_id: str) -> tuple[Switch, ...]:
    """Return the switches of the open leases.

    A container has the switch of its rent; where nobody recorded that, the file's counts. Of two leases that read the
    same signs, the switch that fires first is returned. The folder that an adopted lease's container reads is unknown:
    the folders of all slots of its workload get signs.
    """
    found: dict[tuple[Bucket, str], Switch] = {}
    runs = _Runs(known.guard_runs)
    for lease, place, terms in _switched(known, workloads):
        markets, is_guess = frozenset({lease.market}), is_unfound(lease)
        for run in runs.of(lease):
            folder = run.folder(fleet_id)
            switch = Switch(lease.slot, place, folder, terms.deadman, _ending(terms), markets, is_guess)
            found[switch.key] = _sooner(found.get(switch.key), switch)
    return tuple(found.values())


def _switched(known: Recollection, workloads: Iterable[Workload]) -> Iterator[tuple[Lease, Bucket, KeptTerms]]:
    """Yield the open leases with a guard, its bucket, and the terms of its switch."""
    works = {work.name: work for work in workloads}
    for lease in known.leases:
        work = works.get(lease.slot.workload)
        place = work.guard.bucket if work is not None and work.guard is not None else None
        terms = kept_terms.read(lease)
        if work is not None and (terms is None or not terms.is_switch_recorded):
            terms = kept_terms.of(work)
        if place is not None and terms is not None and lease.is_open:
            yield lease, place, terms


def _ending(terms: KeptTerms) -> str:
    return "releases" if terms.destroys else "stops"


def _sooner(one: Switch | None, other: Switch) -> Switch:
    """Return the switch that fires first, with the markets of both; one that never fires is the last.

    A guess never replaces a switch that is known to read there.
    """
    if one is None:
        return other
    if one.is_guess is not other.is_guess:
        return replace(other if one.is_guess else one, markets=one.markets | other.markets)
    is_first = one.after is not None and (other.after is None or one.after <= other.after)
    return replace(one if is_first else other, markets=one.markets | other.markets)


class _Runs:
    """The runs of the ledger by what a lease knows of its own: they are many, and each cycle asks for every lease."""

    def __init__(self, runs: Iterable[GuardRun]) -> None:
        self._by_number: dict[tuple[Slot, int], GuardRun] = {}
        self._by_workload: dict[str, list[GuardRun]] = {}
        for run in runs:
            self._by_number[run.slot, run.run] = run
            self._by_workload.setdefault(run.slot.workload, []).append(run)

    def of(self, lease: Lease) -> list[GuardRun]:
        """Return the runs whose folders the container of a lease may read."""
        if lease.guard_run is not None:
            run = self._by_number.get((lease.slot, lease.guard_run))
            return [] if run is None else [run]
        # A later run began after its container.
        possible = self._by_workload.get(lease.slot.workload, ())
        return list({run.slot: run for run in possible if run.run == 1 or run.begun_at <= lease.opened_at}.values())
