"""What the label on an instance of ours says: which fleet, which slot, which intent."""

from dataclasses import dataclass

from agent.domain.work.workload import Slot


@dataclass(frozen=True, slots=True)
class Label:
    """The content of a label of ours; its text is made and read in markets.labels."""

    fleet_id: str
    slot: Slot
    intent_id: str
