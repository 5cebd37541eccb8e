"""An intent: a decision about to be sent, durable before its request leaves."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from agent.domain.market.host import HostKey
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import Slot


class IntentKind(Enum):
    """The order of an intent."""

    RENT = "rent"
    REBID = "rebid"
    RESUME = "resume"
    PAUSE = "pause"
    RELEASE = "release"

    @property
    def is_paying(self) -> bool:
        """Whether it can raise spend: only these are sent at most once."""
        return self in {IntentKind.RENT, IntentKind.REBID, IntentKind.RESUME}


class IntentState(Enum):
    """The state of an intent."""

    RECORDED = "recorded"
    SENT = "sent"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    DENIED = "denied"
    IN_DOUBT = "in_doubt"
    VOID = "void"


OPEN = frozenset({IntentState.RECORDED, IntentState.SENT, IntentState.IN_DOUBT})

ALLOWED: dict[IntentState, frozenset[IntentState]] = {
    IntentState.RECORDED: frozenset({IntentState.SENT, IntentState.DENIED, IntentState.VOID}),
    IntentState.SENT: frozenset({IntentState.CONFIRMED, IntentState.REJECTED, IntentState.IN_DOUBT}),
    IntentState.IN_DOUBT: frozenset({IntentState.CONFIRMED, IntentState.VOID}),
    # The market named an instance that is not ours: the one that was really rented is still to be found.
    IntentState.CONFIRMED: frozenset({IntentState.IN_DOUBT}),
    IntentState.REJECTED: frozenset({IntentState.IN_DOUBT}),
    IntentState.DENIED: frozenset(),
    IntentState.VOID: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Intent:
    """A decision recorded before it is sent.

    `rate` is what it may cost per hour (the bid or ask plus disk): it counts as spend while in doubt. `price` is the
    bid asked for, None for on-demand. `lease_id` is empty for a rent until it is confirmed. `instance_id` is what the
    market answered, as far as it did.
    """

    intent_id: str
    kind: IntentKind
    state: IntentState
    market: str
    slot: Slot
    recorded_at: datetime
    reason: str
    lease_id: str = ""
    offer_id: str = ""
    host_id: str = ""
    instance_id: str = ""
    tenure: Tenure | None = None
    price: UsdPerHour | None = None
    rate: UsdPerHour = UsdPerHour(0)
    disk_gb: float = 0.0
    sent_at: datetime | None = None
    doubted_at: datetime | None = None
    resolved_at: datetime | None = None
    outcome: str = ""

    @property
    def host(self) -> HostKey:
        """The host, with its market."""
        return HostKey(self.market, self.host_id)

    @property
    def is_open(self) -> bool:
        """Whether the market may still act on it."""
        return self.state in OPEN
