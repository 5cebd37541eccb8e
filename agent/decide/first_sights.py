"""When a configuration first had each workload, and each slot of one with fallback markets.

From then on what never ran is down. The ledger keeps it while the configuration has the workload or the slot, so that a
restart begins no wait anew. A workload that is renamed keeps it, and what is removed and added again begins anew.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from agent.domain.slot import Slot
from agent.domain.work.workload import Workload


def in_this_run(workloads: Iterable[Workload], before: Mapping[str, datetime], now: datetime) -> dict[str, datetime]:
    """Return when this run first saw each, by name; `before` is the same of the last cycle."""
    return {name: before.get(name, now) for name, _ in _names(workloads)}


def of(
    workloads: Iterable[Workload], recorded: Mapping[str, datetime], seen: Mapping[str, datetime]
) -> dict[str, datetime]:
    """Return each first sight, by name: as recorded, also under the old name, else as `seen`.

    Slots of which none is recorded were there with their workload: its fallback markets are new, or its ledger is old.
    """
    found: dict[str, datetime] = {}
    for work in workloads:
        since = found[work.name] = recorded.get(work.name) or recorded.get(work.was) or seen[work.name]
        places = {str(place): _before(work, place) for place in _slots(work)}
        kept = {name: recorded.get(name) or recorded.get(was) for name, was in places.items()}
        is_kept = any(kept.values())
        found |= {name: at or (seen[name] if is_kept else since) for name, at in kept.items()}
    return found


def news(recorded: Mapping[str, datetime], present: Mapping[str, datetime]) -> dict[str, datetime | None]:
    """Return the first sights to record, by name; None forgets what the configuration has no more."""
    gone: dict[str, datetime | None] = dict.fromkeys(recorded.keys() - present.keys())
    return gone | {name: at for name, at in present.items() if recorded.get(name) != at}


def _slots(work: Workload) -> tuple[Slot, ...]:
    """Return the slots of which each has a first sight of its own."""
    return work.places if work.fallback.markets else ()


def _names(workloads: Iterable[Workload]) -> Iterator[tuple[str, str]]:
    """Yield the name of everything that has a first sight, with its name before a renaming, or an empty text."""
    for work in workloads:
        yield work.name, work.was
        for place in _slots(work):
            yield str(place), _before(work, place)


def _before(work: Workload, place: Slot) -> str:
    """Return the name of a slot before a renaming, or an empty text."""
    return str(Slot(work.was, place.index)) if work.was else ""
