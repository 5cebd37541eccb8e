"""The table `[runpod]` of a climate, with settings for this market alone."""

import dataclasses
from typing import Any

from agent.simulator.runpod import sales_modes


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """A change of the sales mode (sales_modes.py) at a set time."""

    at_seconds: float
    mode: str


@dataclasses.dataclass(frozen=True, slots=True)
class Runpod:
    """Demand, price spikes and strikes of the climate apply too."""

    credit: float = 100.0
    scale: float = 1.0  # times the hosts of each type
    mode: str = "spot_discontinued"  # the sales mode, by default today's: see sales_modes.py
    low_balance: str = "terminate"  # without credit: "terminate" ends pods without a network volume, or "stop"
    bid_share: float = 0.3  # share of the other renters who bid
    bills_silent_hosts: bool = False  # undocumented; renters claim the money from support afterwards
    turns: tuple[Turn, ...] = ()

    def __post_init__(self) -> None:
        """Take turns as tables of a file too. Raises ValueError for a mode that is unknown."""
        object.__setattr__(self, "turns", tuple(map(_turn, self.turns)))
        for mode in (self.mode, *(turn.mode for turn in self.turns)):
            sales_modes.parse(mode)


def _turn(row: Any) -> Turn:  # noqa: ANN401 - what a file says
    return row if isinstance(row, Turn) else Turn(**row)
