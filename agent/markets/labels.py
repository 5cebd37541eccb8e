"""Fleet, workload, slot and intent <-> the label on an instance. The label separates our instances from others.

Where several daemons share a ledger on a server, the label also contains the epoch in which the rent was sent. A label
without an epoch is valid too: a ledger in a file has no epochs.

A market that allows only short names gets the short text, which has no room for the workload and the epoch. The
workload is then read from the ledger by the intent (`observe/short_labels.py`). Until then it is the empty text, which
names no workload.
"""

import functools
import re

from agent.domain.market.label import Label
from agent.domain.slot import Slot

MAX_LABEL = 256
MAX_SHORT_LABEL = 41
"""The length of the longest short text: that of a slot with four digits."""
_LABEL = re.compile(
    r"gpubid:(?P<fleet>[0-9a-f]{12}):(?P<workload>[A-Za-z0-9._-]{1,64}):(?P<slot>\d{1,4}):(?P<intent>[0-9a-f]{16})"
    r"(?::e(?P<epoch>[1-9]\d{0,17}))?"
)
_SHORT = re.compile(r"gpubid-(?P<fleet>[0-9a-f]{12})-(?P<slot>[0-9]{1,4})-(?P<intent>[0-9a-f]{16})")


def text(label: Label) -> str:
    """Return the label's text, at most `MAX_LABEL` characters."""
    epoch = f":e{label.epoch}" if label.epoch else ""
    return f"gpubid:{label.fleet_id}:{label.slot.workload}:{label.slot.index}:{label.intent_id}{epoch}"


def short_text(label: Label) -> str:
    """Return the label without its workload, in at most `MAX_SHORT_LABEL` lower-case letters, digits and hyphens."""
    return f"gpubid-{label.fleet_id}-{label.slot.index}-{label.intent_id}"


@functools.lru_cache(1024)
def parse(written: str) -> Label | None:
    """Return the label, or None for a text that is not exactly a label of gpubid; the fleet may be any.

    The slot of a short text has no workload.
    """
    match = _LABEL.fullmatch(written)
    if match is not None:
        slot = Slot(match["workload"], int(match["slot"]))
        return Label(match["fleet"], slot, match["intent"], int(match["epoch"] or 0))
    match = _SHORT.fullmatch(written)
    return None if match is None else Label(match["fleet"], Slot("", int(match["slot"])), match["intent"])
