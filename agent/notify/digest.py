"""The daily digest: the cost of the last day, its interruptions, and its orders."""

import datetime as dt
from collections import Counter
from dataclasses import dataclass

from agent.config.notify_settings import Severity
from agent.domain import money
from agent.domain.record.event_kind import EventKind
from agent.ledger.reader import Reader
from agent.ledger.tables.spend_rows import SpendKey

MOST_EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class Digest:
    """A message for any channel."""

    title: str
    text: str
    severity: Severity = Severity.NOTICE


async def digest(reader: Reader, now: dt.datetime) -> Digest:
    """Return the digest of the UTC day before `now`."""
    day = now.date() - dt.timedelta(days=1)
    start = dt.datetime.combine(day, dt.time(), dt.UTC)
    lines = await reader.spend_by(SpendKey.WORKLOAD, day, now.date())
    happened = await reader.events(since=start, until=start + dt.timedelta(days=1), limit=MOST_EVENTS)
    losses = Counter(each.cause.value for each in happened if each.kind == EventKind.LEASE_INTERRUPTED and each.cause)
    did = Counter(
        each.kind
        for each in happened
        if each.kind.startswith(("lease.re", EventKind.LEASE_OPENED, EventKind.LEASE_PAUSED))
    )
    spent = money.total(line.amount for line in lines)
    sentences = [f"{day}: spent {spent}"]
    for line in lines:
        running, useful = line.running_seconds / 3600, line.useful_seconds / 3600
        sentences.append(
            f"  {line.key or 'before this ledger'}: {line.amount}, {running:.1f} h paid, {useful:.1f} h useful"
        )
    sentences.append("interruptions: " + (", ".join(f"{losses[cause]} {cause}" for cause in sorted(losses)) or "none"))
    sentences.append("did: " + (", ".join(f"{did[kind]} {kind}" for kind in sorted(did)) or "nothing"))
    return Digest(f"gpubid: {day} cost {spent}", "\n".join(sentences))
