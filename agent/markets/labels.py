"""fleet, workload, slot and intent <-> the label on an instance: how ours is told from others'."""

import re
from dataclasses import dataclass

from agent.domain.workload import Slot

MAX_LABEL = 256
_LABEL = re.compile(r"gpubid:(?P<fleet>[0-9a-f]{12}):(?P<workload>[A-Za-z0-9._-]{1,64}):(?P<slot>\d{1,4}):(?P<intent>[0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class Label:
    """What a label of ours says."""

    fleet_id: str
    slot: Slot
    intent_id: str

    def __str__(self) -> str:
        return f"gpubid:{self.fleet_id}:{self.slot.workload}:{self.slot.index}:{self.intent_id}"


def parse(text: str) -> Label | None:
    """Return the label, or None for any text that is not exactly one of ours, of whatever fleet."""
    match = _LABEL.fullmatch(text)
    if match is None:
        return None
    return Label(match["fleet"], Slot(match["workload"], int(match["slot"])), match["intent"])
