"""Spells for a fit: from traces, a table of lifetimes, or our own ledger. From the ledger also rivals' bids."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agent.config.problems import ConfigError, Problem
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease
from agent.lab.traces import survival, trace_files
from agent.lab.traces.survival import Spell

COLUMNS = ("zone", "machine_type", "started", "lifetime_seconds")
LOSS, RETURN = "loss", "return"
BEGINS = frozenset({EventKind.LEASE_RUNNING, EventKind.LEASE_RESUMED})
ENDS = frozenset(
    {
        EventKind.LEASE_INTERRUPTED,
        EventKind.LEASE_PAUSED,
        EventKind.LEASE_EXITED,
        EventKind.LEASE_OFFLINE,
        EventKind.LEASE_RELEASED,
        EventKind.LEASE_GONE,
        EventKind.LEASE_ENDED,
    }
)
BY_MARKET = frozenset({Cause.OUTBID, Cause.DISPLACED})
LEAST_BIDS = 5


@dataclass(frozen=True, slots=True)
class Pool:
    """Spells of a pool in the order in which they began: `of` is loss (capacity that was there) or return.

    The pool was observed every `gap` hours; 0 means all the time.
    """

    name: str
    of: str
    spells: tuple[Spell, ...]
    gap: float = 0.0


@dataclass(frozen=True, slots=True)
class Rivals:
    """Rivals' prices over our bid when they outbid us: a Pareto law of that ratio, and its distance from the data.

    `alpha`: the chance that a rival who beats a bid also beats one higher by the share x is (1 + x) ** -alpha (Hill,
    Annals of Statistics 3(5), 1975). Rivals below our bids are never seen.
    """

    seen: int
    alpha: float
    error: float
    median_share: float
    distance: float
    bound: float


def of_traces(folder: Path) -> list[Pool]:
    """Return the spells of every pool.

    Raises:
        ConfigError: a file is no trace.
    """
    found = []
    for trace in trace_files.folder(folder):
        gap = trace.gap_seconds / 3600
        for what, there in ((LOSS, True), (RETURN, False)):
            seen = survival.spells(trace.available > 0, gap, of_capacity=there)
            found.append(Pool(trace.pool, what, tuple(seen), gap))
    return found


def of_table(file: Path, cap_hours: float | None) -> list[Pool]:
    """Return the lifetimes of a CSV by zone. Those of `cap_hours` or more were ended by the cloud's rule: censored.

    Raises:
        ConfigError: a column is missing, or a row is no lifetime.
    """
    try:
        with file.open(newline="") as opened:
            rows = csv.DictReader(opened)
            missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
            if missing:
                raise _wrong(file, 1, ", ".join(missing), f"is missing; the columns are {', '.join(COLUMNS)}")
            read = [_life(file, number, row, cap_hours) for number, row in enumerate(rows, start=2)]
    except OSError as error:
        raise _wrong(file, 1, "file", f"cannot be read ({error.strerror})") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise _wrong(file, 1, "file", "is no CSV in UTF-8; write it again") from error
    read.sort(key=lambda each: each[1])
    zones = sorted({zone for zone, _, _ in read})
    return [Pool(name, LOSS, tuple(spell for zone, _, spell in read if zone == name)) for name in zones]


def of_ledger(leases: Iterable[Lease], events: Iterable[Event]) -> list[Pool]:
    """Return by market how long our interruptible leases ran until the market took them. Other ends are censored."""
    by_id = {lease.lease_id: lease for lease in leases if lease.tenure is Tenure.INTERRUPTIBLE}
    began: dict[str, datetime] = {}
    found: dict[str, list[tuple[datetime, Spell]]] = {}
    last: datetime | None = None
    for event in sorted(events, key=lambda each: (each.at, each.event_id or 0)):
        last = event.at
        lease = by_id.get(event.lease_id)
        if lease is None:
            continue
        if event.kind in BEGINS:
            began.setdefault(event.lease_id, event.at)
        elif event.kind in ENDS and event.lease_id in began:
            since = began.pop(event.lease_id)
            is_loss = event.kind == EventKind.LEASE_INTERRUPTED and event.cause in BY_MARKET
            found.setdefault(lease.market, []).append((since, Spell(_hours(since, event.at), is_loss)))
    for lease_id, since in began.items():
        if last is not None:
            found.setdefault(by_id[lease_id].market, []).append((since, Spell(_hours(since, last), has_ended=False)))
    return [
        Pool(market, LOSS, tuple(spell for _, spell in sorted(each, key=lambda pair: pair[0])))
        for market, each in sorted(found.items())
    ]


def rivals(events: Iterable[Event]) -> Rivals | None:
    """Return the law of rivals' prices over ours when they outbid us, or None if too few were seen."""
    lifetimes = [
        event for event in events if event.cause is Cause.OUTBID and event.bid is not None and event.floor is not None
    ]
    logs = sorted(
        math.log(event.floor.micros / event.bid.micros)
        for event in lifetimes
        if event.floor is not None and event.bid is not None and event.floor.micros > event.bid.micros > 0
    )
    if len(logs) < LEAST_BIDS:
        return None
    count, alpha = len(logs), len(logs) / sum(logs)
    law = [1 - math.exp(-alpha * each) for each in logs]
    distance = max(max((place + 1) / count - told_, told_ - place / count) for place, told_ in enumerate(law))
    median = 2 ** (1 / alpha) - 1
    return Rivals(count, alpha, alpha / math.sqrt(count), median, distance, 1.358 / math.sqrt(count))


def together(pools: Sequence[Pool], of: str) -> Pool:
    """Return all pools as one. Their spells keep their order and are taken from the pools in turn."""
    mine = [pool.spells for pool in pools if pool.of == of]
    longest = max((len(each) for each in mine), default=0)
    dealt = [
        (place / max(len(each), 1), number, each[place])
        for place in range(longest)
        for number, each in enumerate(mine)
        if place < len(each)
    ]
    gap = max((pool.gap for pool in pools if pool.of == of), default=0.0)
    return Pool("all pools", of, tuple(spell for _, _, spell in sorted(dealt, key=lambda item: item[:2])), gap)


def _life(file: Path, number: int, row: Mapping[str, str], cap_hours: float | None) -> tuple[str, datetime, Spell]:
    try:
        hours = float(row["lifetime_seconds"]) / 3600
        at = datetime.fromisoformat(row["started"])
    except (TypeError, ValueError):
        raise _wrong(file, number, "row", "has no ISO time or no number of seconds; fix or drop it") from None
    if not row["zone"]:
        raise _wrong(file, number, "row", "has no zone; fix or drop it")
    if not 0 < hours < math.inf or at.tzinfo is None:
        raise _wrong(file, number, "row", "has no lifetime above 0 or no zone in its time; fix or drop it")
    is_capped = cap_hours is not None and hours >= cap_hours
    return row["zone"], at, Spell(min(hours, cap_hours) if is_capped and cap_hours else hours, not is_capped)


def _hours(since: datetime, until: datetime) -> float:
    return max((until - since).total_seconds(), 1.0) / 3600


def _wrong(file: Path, line: int, key: str, sentence: str) -> ConfigError:
    return ConfigError([Problem(str(file), line, key, "bad_table", sentence)])
