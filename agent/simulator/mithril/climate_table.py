"""The table `[mithril]` of a climate, with settings for this market alone."""

import dataclasses

LOAD = 1.4
"""As `MITHRIL_LOAD` in assumed_figures.py."""


@dataclasses.dataclass(frozen=True, slots=True)
class Mithril:
    """Arrivals, price spikes and strikes of the climate apply too."""

    load: float = LOAD  # instances that rivals want in the long run, over those that there are
    reservations: float = 1.0  # times the assumed rate of reservations
    tells_win_price: float = 0.0  # share of the pools that tell the lowest allocated bid and the price to win
    bills_notice: bool = True  # undocumented: the minutes between the notice and the end
