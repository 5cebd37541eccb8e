"""Interruptions, losses of a running lease that we did not order: the causes, and the evidence for them.

The ledger has an event for each, with cause, rule and evidence (`domain/record/event.py`).
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from agent.domain.market.host import HostKey
from agent.domain.money import UsdPerHour
from agent.domain.slot import Slot


class Cause(StrEnum):
    """Why a lease stopped running."""

    OUTBID = "outbid"
    DISPLACED = "displaced"
    HOST_OFFLINE = "host_offline"
    HOST_GONE = "host_gone"
    CONTAINER_EXIT = "container_exit"
    OUT_OF_CREDIT = "out_of_credit"
    CONTRACT_END = "contract_end"
    EXTERNAL_STOP = "external_stop"
    UNKNOWN = "unknown"


class MarketEventKind(StrEnum):
    """The kinds of rows in a market's own record of an instance."""

    OUTBID = "outbid"
    """Outbid, at a reported price."""
    BID_LOST = "bid_lost"
    """Outbid, at an unknown price."""
    STOPPED_BY_MARKET = "stopped_by_market"
    STARTED = "started"
    RESUMED = "resumed"
    STOPPED = "stopped"
    OFFLINE = "offline"
    ONLINE = "online"
    MAINTENANCE = "maintenance"
    NEAR_END = "near_end"
    LOW_CREDIT = "low_credit"
    PRICE_RISE = "price_rise"
    """A host asks for a higher price from a certain day on."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class MarketEvent:
    """A row of a market's own record about one of our instances: evidence, never a state."""

    event_id: str
    market: str
    kind: MarketEventKind
    instance_id: str
    at: datetime
    your_bid: UsdPerHour | None = None
    new_floor: UsdPerHour | None = None
    new_rate: UsdPerHour | None = None
    """For a rise, the new price of one GPU."""
    begins_at: datetime | None = None
    """For maintenance, when it begins, if the market names it."""
    ends_at: datetime | None = None
    """As above, when it ends."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a cause: the rule that decided, and its observation in one sentence."""

    rule: str
    sentence: str
    floor: UsdPerHour | None = None
    notice_at: datetime | None = None
    """When the market had said before that it ends the lease; None without a notice."""


def announced(notice_at: datetime | None) -> str:
    """Return a notice in words that follow the evidence of a loss; empty without one."""
    return f"; the market had said that it ends at {notice_at:%H:%M:%S}" if notice_at is not None else ""


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of a slot's running lease on a host, and its cause."""

    at: datetime
    slot: Slot
    market: str
    host_id: str
    cause: Cause | None

    @property
    def host(self) -> HostKey:
        """The host, with its market."""
        return HostKey(self.market, self.host_id)
