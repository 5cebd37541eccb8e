"""An intent: a decision about to be sent, durable before its request leaves."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.slot import Slot


class IntentKind(Enum):
    """The order of an intent."""

    RENT = "rent"
    REBID = "rebid"
    RESUME = "resume"
    PAUSE = "pause"
    RELEASE = "release"
    REGISTER_KEY = "register_key"
    REASSIGN = "reassign"
    """The instance of a finished task goes on with another slot. No market is asked, so it is never open."""

    @property
    def is_paying(self) -> bool:
        """Whether it can raise spend. Only such intents are sent at most once."""
        return self in {IntentKind.RENT, IntentKind.REBID, IntentKind.RESUME}

    @property
    def begins_work(self) -> bool:
        """Whether it pays, or goes on paying for other work: neither may be after a kill."""
        return self.is_paying or self is IntentKind.REASSIGN


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
    # The market named an instance that is not ours. The really rented one is still to be found.
    IntentState.CONFIRMED: frozenset({IntentState.IN_DOUBT}),
    IntentState.REJECTED: frozenset({IntentState.IN_DOUBT}),
    IntentState.DENIED: frozenset(),
    IntentState.VOID: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Intent:
    """A decision recorded before it is sent."""

    intent_id: str
    """Its id, which travels to the market in the label."""
    kind: IntentKind
    """The kind of the order."""
    state: IntentState
    """Its state."""
    market: str
    """The market that it is sent to."""
    slot: Slot
    """The slot that it is for."""
    recorded_at: datetime
    """When it was written down."""
    reason: str
    """The reason, as a sentence."""
    lease_id: str = ""
    """The lease of the order; empty for a rent until it is confirmed."""
    offer_id: str = ""
    """The offer of a rent."""
    host_id: str = ""
    """The host of the order."""
    instance_id: str = ""
    """The instance that the market named, if it did."""
    tenure: Tenure | None = None
    """The ordered tenure of a rent."""
    price: UsdPerHour | None = None
    """The ordered bid; None on demand."""
    rate: UsdPerHour = UsdPerHour(0)
    """The most it may cost per hour: bid or ask plus disk. It counts as spend while in doubt."""
    disk_gb: float = 0.0
    """The size of the ordered disk."""
    sent_at: datetime | None = None
    """When it was sent."""
    doubted_at: datetime | None = None
    """When it came into doubt."""
    resolved_at: datetime | None = None
    """When it was settled; None while it is open."""
    outcome: str = ""
    """The outcome in words."""
    guard_run: int | None = None
    """The slot's run that the guard of a rent is started for."""
    guard_terms: str | None = None
    """The terms that this guard gets, as JSON (`kept_terms.py` of the domain)."""
    gpu: GpuModel | None = None
    """The model of the GPUs of a rent; None in a record of an older program."""
    gpus: int | None = None
    """How many GPUs a rent ordered; None as above."""

    @property
    def host(self) -> HostKey:
        """The host, with its market."""
        return HostKey(self.market, self.host_id)

    @property
    def is_open(self) -> bool:
        """Whether the market may still act on it."""
        return self.state in OPEN
