"""Lines of the page with the same text for several slots of one workload are one line, which names the first slot."""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TypeVar

from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.work.decision import Decision, Hold, slot_of

_SLOT_OF = re.compile(r"(?P<kind>.*:)?(?P<workload>[^:/]+)/\d+")

T = TypeVar("T")


def named(first: object, count: int) -> str:
    """Return the name of a line about `count` slots, the first of which is `first`."""
    return f"{first} and {count - 1} more" if count > 1 else str(first)


def of_plan(decisions: Iterable[Decision], many: Collection[str]) -> list[Sequence[Decision]]:
    """Return the decisions of each line. Holds with one reason, of slots of one of the workloads `many`, share it."""

    def shared(decision: Decision) -> Hashable | None:
        place, reason = slot_of(decision), decision.reason
        is_shared = isinstance(decision, Hold) and place.workload in many
        return (place.workload, reason.code, reason.sentence.replace(str(place), "")) if is_shared else None

    return _together(decisions, shared)


def of_holds(records: Iterable[ExpiringRecord], many: Collection[str]) -> list[Sequence[ExpiringRecord]]:
    """Return the cooldowns and holds of each line. Those without an end, of one kind and cause, share it."""

    def shared(record: ExpiringRecord) -> Hashable | None:
        found = _SLOT_OF.fullmatch(str(record))
        is_shared = found is not None and found["workload"] in many and record.until is None
        return (found["kind"], found["workload"], record.ground) if found is not None and is_shared else None

    return _together(records, shared)


def _together(rows: Iterable[T], shared: Callable[[T], Hashable | None]) -> list[Sequence[T]]:
    """Return the rows of each line in order; a row without a key has a line of its own."""
    lines: list[list[T]] = []
    by_key: dict[Hashable, list[T]] = {}
    for row in rows:
        key = shared(row)
        if key is not None and key in by_key:
            by_key[key].append(row)
            continue
        lines.append([row])
        if key is not None:
            by_key[key] = lines[-1]
    return list(lines)
