"""Fleet, workload, slot and intent <-> the label on an instance. The label separates our instances from others."""

import functools
import re

from agent.domain.market.label import Label
from agent.domain.slot import Slot

MAX_LABEL = 256
_LABEL = re.compile(
    r"gpubid:(?P<fleet>[0-9a-f]{12}):(?P<workload>[A-Za-z0-9._-]{1,64}):(?P<slot>\d{1,4}):(?P<intent>[0-9a-f]{16})"
)


def text(label: Label) -> str:
    """Return the label's text, at most `MAX_LABEL` characters."""
    return f"gpubid:{label.fleet_id}:{label.slot.workload}:{label.slot.index}:{label.intent_id}"


@functools.lru_cache(1024)
def parse(written: str) -> Label | None:
    """Return the label, or None for a text that is not exactly a label of gpubid; the fleet may be any."""
    match = _LABEL.fullmatch(written)
    if match is None:
        return None
    return Label(match["fleet"], Slot(match["workload"], int(match["slot"])), match["intent"])
