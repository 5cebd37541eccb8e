"""A ledger's market history as lines of JSON, for other machines and people. Nobody is identifiable in it.

Labels, images, commands, account ids, the fleet id, instance ids and workload names are always left out. Hosts and
owners are hashed with the ledger's own salt, so that two exports of one ledger have the same name for a host, and
exports of other ledgers do not.

Invariants:
1. A line is written from named fields only: a new column of a table is not exported until it is named here.
2. The salt is in a file beside the ledger and is used only for the hashes.
"""

import bisect
import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from agent import __version__
from agent.domain.market.offer import Offer
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease
from agent.lab.traces.ledger_history import History

KIND, VERSION = "gpubid market history", 1
DIGITS = 12
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
_EXPORTED_KINDS = frozenset(
    {
        EventKind.LEASE_RUNNING,
        EventKind.LEASE_RESUMED,
        EventKind.LEASE_STARTING,
        EventKind.LEASE_INTERRUPTED,
        EventKind.LEASE_START_LOST,
        EventKind.LEASE_PAUSED,
        EventKind.LEASE_FAILED,
        EventKind.LEASE_OFFLINE,
        EventKind.LEASE_REBID,
        EventKind.LEASE_RELEASED,
        EventKind.LEASE_RELEASED_BY_US,
        EventKind.LEASE_OPENED,
    }
)


class Names:
    """Pseudonyms of hosts and owners: hashed with a salt, or plain without one."""

    def __init__(self, salt: bytes | None) -> None:
        """Hash with `salt`. None keeps names as they are."""
        self._salt = salt

    @property
    def is_plain(self) -> bool:
        """Whether names are kept."""
        return self._salt is None

    def of(self, kind: str, market: str, name: str) -> str:
        """Return the pseudonym of a host or an owner. A pool keeps its visible kind."""
        if self._salt is None or not name:
            return name
        digest = hmac.new(self._salt, f"{kind}/{market}/{name}".encode(), hashlib.sha256).hexdigest()[:DIGITS]
        return f"pool/{digest}" if name.startswith("pool/") else digest


def of_span(known: History, since: datetime | None, until: datetime | None) -> History:
    """Return the data from `since` up to but not at `until`: prices, slices, leases and events of the searches' time.

    The last price before `since` is kept if a later search showed the slice, because it was still in force then. A
    lease that ended after `until` counts as open.
    """
    if since is None and until is None:
        return known
    first, last = since or _FIRST, until or _LAST
    shown = {(look.market, *each) for look in known.looks for each in look.slices}
    prices = {}
    for key, samples in known.prices.items():
        begin = bisect.bisect_left(samples, first, key=lambda sample: sample.at)
        prices[key] = samples[max(begin - 1, 0) if key in shown else begin :]
    prices = {key: samples for key, samples in prices.items() if samples}
    leases = [lease for lease in known.leases if lease.opened_at < last and (lease.ended_at or _LAST) >= first]
    return replace(
        known,
        prices=prices,
        slices={key: offer for key, offer in known.slices.items() if key in shown or key in prices},
        leases=[
            msgspec.structs.replace(each, ended_at=None) if (each.ended_at or first) >= last else each
            for each in leases
        ],
        events={lease: [event for event in events if event.at >= first] for lease, events in known.events.items()},
    )


def lines(known: History, names: Names) -> Iterator[str]:
    """Yield the lines of an export: its description, slices, prices, searches, leases, and their events."""
    span = known.span
    yield _line(
        kind=KIND,
        version=VERSION,
        gpubid=__version__,
        anonymised=not names.is_plain,
        since=_instant(span[0]) if span else None,
        until=_instant(span[1]) if span else None,
    )
    for offer in known.slices.values():
        yield _line(kind="slice", **_slice(offer, names))
    for key in sorted(known.prices):
        for sample in known.prices[key]:
            yield _line(
                kind="price",
                at=_instant(sample.at),
                market=sample.market,
                host=names.of("host", sample.market, sample.host_id),
                gpu=sample.gpu,
                gpus=sample.gpus,
                ask=sample.ask.dollars if sample.ask is not None else None,
                floor=sample.floor.dollars if sample.floor is not None else None,
            )
    for look in known.looks:
        shown = [[names.of("host", look.market, host), gpus] for host, gpus in look.slices]
        yield _line(kind="look", at=_instant(look.at), market=look.market, slices=shown)
    yield from _of_leases(known, names)


def _of_leases(known: History, names: Names) -> Iterator[str]:
    for number, lease in enumerate(known.leases, start=1):
        yield _line(kind="lease", lease=number, **_lease(lease, names))
        for event in known.events.get(lease.lease_id, []):
            if event.kind in _EXPORTED_KINDS:
                yield _line(kind="event", lease=number, **_event(event))


def _slice(offer: Offer, names: Names) -> dict[str, Any]:
    return {
        "market": offer.market,
        "host": names.of("host", offer.market, offer.host_id),
        "owner": names.of("owner", offer.market, offer.owner_id),
        "gpu": offer.gpu,
        "gpus": offer.gpus,
        "vram_mb": offer.vram_mb,
        "dlperf": offer.dlperf,
        "reliability": offer.reliability,
        "is_verified": offer.is_verified,
        "is_datacenter": offer.is_datacenter,
        "region": offer.region,
        "inet_down_mbps": offer.inet_down_mbps,
        "inet_up_mbps": offer.inet_up_mbps,
        "storage_dollars_per_gb_month": offer.storage_micros_per_gb_month / 1e6,
        "traffic_down_dollars_per_gb": offer.traffic_down_micros_per_gb / 1e6,
        "traffic_up_dollars_per_gb": offer.traffic_up_micros_per_gb / 1e6,
        "seen_at": _instant(offer.seen_at),
    }


def _lease(lease: Lease, names: Names) -> dict[str, Any]:
    return {
        "market": lease.market,
        "host": names.of("host", lease.market, lease.host_id),
        "owner": names.of("owner", lease.market, lease.owner_id),
        "gpu": lease.gpu,
        "gpus": lease.gpus,
        "tenure": lease.tenure.value,
        "rate": lease.gpu_rate.dollars,
        "disk_rate": lease.disk_rate.dollars,
        "opened_at": _instant(lease.opened_at),
        "ended_at": _instant(lease.ended_at) if lease.ended_at is not None else None,
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "at": _instant(event.at),
        "what": event.kind,
        "cause": event.cause.value if event.cause is not None else None,
        "rule": event.rule,
        "bid": event.bid.dollars if event.bid is not None else None,
        "floor": event.floor.dollars if event.floor is not None else None,
    }


def _instant(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _line(**values: Any) -> str:  # noqa: ANN401 - JSON
    return json.dumps(values, separators=(",", ":"))
