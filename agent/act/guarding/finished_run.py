"""A run that proves to be finished when a rent is due: its slot is done without the rent."""

from datetime import datetime

from agent.domain.record import hold
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.slot import Slot
from agent.ledger.transaction import Transaction


def note(tx: Transaction, place: Slot, why: str, now: datetime) -> None:
    """Record that a slot is done, by the end that its guard left in the bucket."""
    again = f"`gpubid retry {place}` does the work again"
    done = OperatorHold(Word.DONE, hold.of_slot(place), now, f"{why}; {again}")
    tx.add_expiring(done)
    said = f"{place} is done by {why}; nothing was rented for it; {again}"
    kind = EventKind.WORKLOAD_DONE
    tx.append_event(Event(now, kind, now, place.workload, place.index, reason_code=done.place[0], reason=said))
