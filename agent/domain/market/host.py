"""A host: the physical machine behind offers, with our own record of it.

Some markets name no machine before a rent, only a pool of similar ones. Then the pool replaces the host, with an id
that begins with `POOL`. A pool has room for many leases; "pool/a" contains "pool/a/b".

Old observations of a host say little about it now, so every count halves in `HALF_LIFE`. The decay depends only on
timestamps: neither a restart nor the number of looks changes it.

Markets number their hosts and owners independently, so an id needs its market (`HostKey`, `OwnerKey`).
"""

import math
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from agent.domain.market.outbids import NO_OUTBIDS, Outbids

HALF_LIFE = timedelta(days=10)
"""Counts halve in this time. Assumed, within the one to two weeks that bidding theory suggests."""


POOL = "pool/"
USED_POOL = f"{POOL}used-before/"
"""The beginning of the id of a machine that was there for an earlier instance, and that its market had not let go."""


class HostKey(NamedTuple):
    """The identity of a host: its market and that market's id of the host. Written as MARKET/ID."""

    market: str
    host_id: str

    def __str__(self) -> str:
        """Return the text in orders, cooldowns and explanations."""
        return f"{self.market}/{self.host_id}"

    @property
    def is_pool(self) -> bool:
        """Return whether it names a pool of similar hosts instead of one host."""
        return is_pool(self.host_id)

    def is_same_place(self, other: "HostKey") -> bool:
        """Return whether both may be the same host: equal, or pools of one market of which one contains the other."""
        return self.market == other.market and is_same_place(self.host_id, other.host_id)


class OwnerKey(NamedTuple):
    """The identity of an owner: its market and that market's id of the owner, empty if unknown."""

    market: str
    owner_id: str

    def __str__(self) -> str:
        """Return the text in orders and cooldowns."""
        return f"{self.market}/{self.owner_id}"

    @property
    def is_known(self) -> bool:
        """Return whether the market names the owner."""
        return bool(self.owner_id)


def voice(host: HostKey, owner: OwnerKey | None) -> str:
    """Return whose word a host's figures are: its owner's, or the host's own if its owner is unknown."""
    # A market may give a host and an owner the same number.
    return f"owner {owner}" if owner is not None and owner.is_known else f"host {host}"


def is_pool(host_id: str) -> bool:
    """Return whether an id names a pool of similar hosts instead of one host."""
    return host_id.startswith(POOL)


def is_pool_of(host_id: str, name: str) -> bool:
    """Return whether an id names a pool whose first part is `name`, such as that of a cloud."""
    return host_id.startswith(f"{POOL}{name}/")


def is_used_before(host_id: str) -> bool:
    """Return whether an id names a machine that was there for an earlier instance."""
    return host_id.startswith(USED_POOL)


def first_part(host_id: str) -> str:
    """Return the first part of a pool's name, such as that of its cloud."""
    return host_id.removeprefix(POOL).partition("/")[0]


def is_same_place(one: str, other: str) -> bool:
    """Return whether two ids may be the same host: equal, or pools of which one contains the other."""
    if one == other:
        return True
    return is_pool(one) and is_pool(other) and (f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/"))


class HostRecord(msgspec.Struct, frozen=True):
    """Our observations of a host, decayed as of `updated_at`.

    A stay that still goes on, or that we ended, counts as exposure without a loss: censored, not forgotten.
    """

    market: str
    host_id: str
    owner_id: str = ""
    running_seconds: float = 0.0
    """The exposure in which `interruptions` were counted."""
    interruptions: float = 0.0
    """Losses of any cause."""
    starts_ok: float = 0.0
    """Successful starts."""
    starts_failed: float = 0.0
    """Failed starts."""
    updated_at: datetime | None = None
    """The instant as of which the counts are decayed."""
    market_losses: float = 0.0
    """The interruptions that were outbids or displacements."""
    bid_seconds: float = 0.0
    """The exposure in interruptible leases."""
    loaded_gb: float = 0.0
    """Gigabytes of loaded images."""
    loading_seconds: float = 0.0
    """The seconds that loading them took."""
    displaced: float = 0.0
    """The losses to the market that were to on-demand renters."""
    outbids: Outbids = NO_OUTBIDS
    """The losses to the market that were to bids of known price."""
    weighed_hours: float = 0.0
    """`bid_seconds` in hours, each weighed by the loss rate of an ordinary stay of its age."""

    @property
    def key(self) -> HostKey:
        """The host of this record."""
        return HostKey(self.market, self.host_id)

    @property
    def owner(self) -> OwnerKey:
        """The owner of the host."""
        return OwnerKey(self.market, self.owner_id)

    def plus(self, other: "HostRecord", weight: float = 1.0) -> "HostRecord":
        """Return this record with the counts of another added at a weight."""
        return HostRecord(
            self.market,
            self.host_id,
            self.owner_id,
            updated_at=self.updated_at,
            running_seconds=self.running_seconds + weight * other.running_seconds,
            interruptions=self.interruptions + weight * other.interruptions,
            starts_ok=self.starts_ok + weight * other.starts_ok,
            starts_failed=self.starts_failed + weight * other.starts_failed,
            market_losses=self.market_losses + weight * other.market_losses,
            bid_seconds=self.bid_seconds + weight * other.bid_seconds,
            loaded_gb=self.loaded_gb + weight * other.loaded_gb,
            loading_seconds=self.loading_seconds + weight * other.loading_seconds,
            displaced=self.displaced + weight * other.displaced,
            outbids=self.outbids.plus(other.outbids, weight),
            weighed_hours=self.weighed_hours + weight * other.weighed_hours,
        )


UNSEEN = HostRecord("", "")
"""A record without observations."""


def decayed(record: HostRecord, now: datetime) -> HostRecord:
    """Return the record decayed to `now`; if the clock went back, nothing decays."""
    if record.updated_at is None or now <= record.updated_at:
        return record
    share = math.exp2(-(now - record.updated_at) / HALF_LIFE)
    nothing = HostRecord(record.market, record.host_id, record.owner_id, updated_at=now)
    return nothing.plus(record, share)


def exposed(record: HostRecord, more: HostRecord, at: datetime) -> HostRecord:
    """Return the record decayed to `at` with the newer counts; market, host and owner stay."""
    # A clock that went back must not let the next cycle decay the same days twice.
    return msgspec.structs.replace(decayed(record, at).plus(more), updated_at=max(at, record.updated_at or at))
