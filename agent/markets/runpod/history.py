"""GraphQL's additions to a listing, while it exists: tenure and present bid of each pod, and why it stopped.

Invariant: an addition never makes or removes a pod; the listing of REST v2 is the one that counts.
"""

import functools
import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from agent.domain import money
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import market_errors, text, tolerant_rows
from agent.markets.runpod import graph

QUESTION = """
query account {
  myself { id clientBalance pods {
    id podType costPerHr gpuCount desiredStatus lastStatusChange containerDiskInGb volumeInGb
    runtime { uptimeInSeconds }
  } }
}"""
_MOST_OF_AN_ID = 64
"""Characters of an account's id, which goes into the ledger and into sentences."""
_GUEST = "guest"
"""The account of a request whose key is nobody's, in GraphQL's older answers."""
_INTERRUPTIBLE = frozenset({"INTERRUPTABLE", "BID"})
_MOST = 100_000.0
SAME_RATE = 0.01
"""Share by which the same rate may differ on two surfaces. Assumed."""
_DATE = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2} \d{1,2} \d{4} \d{2}:\d{2}:\d{2}) GMT([+-]\d{4})")
_KINDS = (
    # The first phrase with which the text begins, in any case.
    ("outbid", MarketEventKind.BID_LOST),
    ("exited by user", MarketEventKind.STOPPED),
    ("exited by runpod", MarketEventKind.STOPPED_BY_MARKET),
    ("terminated by runpod", MarketEventKind.STOPPED_BY_MARKET),
    ("terminated by user", MarketEventKind.STOPPED),
    ("rented by user", MarketEventKind.STARTED),
)


class Account(msgspec.Struct):
    """The account of a key; a balance that is missing is unknown, and so is an empty id."""

    id: str
    clientBalance: float | None = None  # noqa: N815 - the vendor's spelling


class Report(msgspec.Struct):
    """The report of a pod's host."""

    uptimeInSeconds: float | None = None  # noqa: N815 - the vendor's spelling


class Pod(msgspec.Struct):
    """One pod in GraphQL's answer."""

    id: str
    podType: str | None = None  # noqa: N815 - the vendor's spelling
    costPerHr: float | None = None  # noqa: N815 - as above
    gpuCount: int | None = None  # noqa: N815 - as above
    desiredStatus: str | None = None  # noqa: N815 - as above
    lastStatusChange: str | None = None  # noqa: N815 - as above
    containerDiskInGb: float | None = None  # noqa: N815 - as above
    volumeInGb: float | None = None  # noqa: N815 - as above
    runtime: Report | None = None

    @property
    def uptime(self) -> float | None:
        """The seconds for which its container has run, None if its host reports nothing."""
        return self.runtime.uptimeInSeconds if self.runtime is not None else None

    @property
    def is_interruptible(self) -> bool:
        """Whether it was rented at a bid."""
        return self.podType in _INTERRUPTIBLE

    @property
    def rate(self) -> UsdPerHour | None:
        """The cost per hour while it runs; at a bid, the bid of all its GPUs; None if missing."""
        if self.costPerHr is None or not 0 < self.costPerHr <= _MOST:
            return None
        return money.per_hour(self.costPerHr)

    @property
    def change(self) -> tuple[MarketEventKind, datetime] | None:
        """The last change and its time, in our words, or None if it is unreadable."""
        phrase, _, stamp = (self.lastStatusChange or "").partition(":")
        at = moment(stamp)
        kind = next((ours for words, ours in _KINDS if phrase.strip().casefold().startswith(words)), None)
        return (kind, at) if kind is not None and at is not None else None


def account(answered: graph.Answered) -> Account:
    """Return the account in an answer to `QUESTION`.

    Raises:
        Unauthorized: the market knows no account of the key.
        Unavailable: the answer lacks the account or its id, with an error about that.
    """
    myself = answered.data.get("myself")
    if answered.errors and not (isinstance(myself, dict) and myself.get("id")):
        raise answered.lacking("myself.id")
    found = None if myself is None else tolerant_rows.row(myself, Account, "The account")
    if found is None or found.id == _GUEST:
        raise market_errors.Unauthorized("runpod does not know the key; check the credential.")
    is_readable = text.clean(found.id, _MOST_OF_AN_ID) == found.id
    return found if is_readable else msgspec.structs.replace(found, id="")


def pods(answered: graph.Answered) -> dict[str, Pod]:
    """Return the pods in an answer to `QUESTION` by id. Other fields than id and kind may be missing, thus unknown.

    Raises:
        Malformed: the answer has no pods.
        Unavailable: an answer with errors lacks the pods, or the kind of one, which decides whether it has a bid.
    """
    try:
        listed = (answered.data.get("myself") or {}).get("pods")
        rows = list(listed or [])
    except (AttributeError, TypeError):
        raise market_errors.Malformed("The account's pods are not what runpod documented.") from None
    if answered.errors and (listed is None or None in rows):
        raise answered.lacking("myself.pods" if listed is None else f"myself.pods.{rows.index(None)}")
    rows_read = [tolerant_rows.row(row, Pod, "The account") for row in rows]
    unclear = [pod.id for pod in rows_read if pod.podType is None]
    if answered.errors and unclear:
        raise answered.lacking(f"podType of pod {text.clean(unclear[0], 64)}")
    # A pod of unreadable kind would pass for an on-demand one.
    return {pod.id: pod for pod in rows_read if pod.podType is not None}


def added(row: Instance, pod: Pod | None, *, has_run: bool) -> Instance:
    """Return an instance of the listing with GraphQL's additions."""
    if pod is None:
        return row
    changes: dict[str, Any] = {"is_rate_shown_twice": _shows_rate_of(pod, row)}
    if pod.is_interruptible:
        changes["tenure"] = Tenure.INTERRUPTIBLE
        changes["gpu_rate"] = pod.rate or row.gpu_rate
    kind = pod.change[0] if pod.change is not None else ""
    if row.state is InstanceState.PAUSED and kind:
        changes["message"] = text.clean(pod.lastStatusChange or "")
        if kind is MarketEventKind.STOPPED_BY_MARKET and not has_run:
            # A bad image ends like this, minutes after a rent that never reported anything.
            changes |= {"state": InstanceState.FAILED, "has_trouble": True}
    return msgspec.structs.replace(row, **changes)


def _shows_rate_of(pod: Pod, row: Instance) -> bool:
    """Return whether GraphQL shows the same rate as the listing; a pod without a cost has its catalogue's rate."""
    if pod.rate is None or not row.may_bill_gpu or "gpu_rate" in row.unread:
        return False
    return abs(pod.rate.micros - row.gpu_rate.micros) <= SAME_RATE * row.gpu_rate.micros


def event(market: str, row: Instance, pod: Pod) -> MarketEvent | None:
    """Return the last change of a pod as an event of ours."""
    if pod.change is None:
        return None
    kind, at = pod.change
    return MarketEvent(
        event_id=f"{row.instance_id}@{at.timestamp():.0f}",
        market=market,
        kind=kind,
        instance_id=row.instance_id,
        at=at,
        your_bid=row.bid,
    )


@functools.lru_cache(1024)
def moment(stamp: str) -> datetime | None:
    """Return an instant as JavaScript writes it, or None."""
    match = _DATE.search(stamp[:100])
    if match is None:
        return None
    try:
        return datetime.strptime(f"{match[1]} {match[2]}", "%b %d %Y %H:%M:%S %z").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
