"""An interruption, the loss of a running lease that we did not ask for: its cause, and the evidence for it.

That one happened is an event of the ledger (`domain/record/event.py`), with cause, rule and evidence.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from agent.domain.market.host import HostKey
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import Slot


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


PRICE_RISE = "price_rise"
"""The kind of an event for a host that asks for more from some day on, unless it is refused."""


@dataclass(frozen=True, slots=True)
class MarketEvent:
    """A row of a market's own record about one of our instances: evidence, never a state.

    `kind` is one of outbid (to a price that is told), bid_lost (to one that is not), stopped_by_market, started,
    resumed, stopped, offline, online, maintenance, near_end, low_credit, price_rise, other. `new_rate` is, of a rise,
    what one GPU would cost.
    """

    event_id: str
    market: str
    kind: str
    instance_id: str
    at: datetime
    your_bid: UsdPerHour | None = None
    new_floor: UsdPerHour | None = None
    new_rate: UsdPerHour | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a cause: the rule that decided, and what it saw, in one sentence."""

    rule: str
    sentence: str
    floor: UsdPerHour | None = None


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
