"""The content of our instances' labels: fleet, slot and intent."""

from dataclasses import dataclass, field

from agent.domain.slot import Slot


@dataclass(frozen=True, slots=True)
class Label:
    """The content of a label of ours; `markets.labels` writes and reads its text.

    `epoch` is that of the leader that sent the rent. It is 0 where the ledger is a file, or a name has no room for it.
    Two labels that differ in it alone are the same.
    """

    fleet_id: str
    slot: Slot
    intent_id: str
    epoch: int = field(default=0, compare=False)
