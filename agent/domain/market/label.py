"""The content of our instances' labels: fleet, slot and intent."""

from dataclasses import dataclass

from agent.domain.slot import Slot


@dataclass(frozen=True, slots=True)
class Label:
    """The content of a label of ours; `markets.labels` writes and reads its text."""

    fleet_id: str
    slot: Slot
    intent_id: str
