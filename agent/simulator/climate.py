"""A climate: the figures and the events of simulated markets, under a name.

Every figure has a default. The defaults are the calibrated market (see recorded_figures.py).
"""

import dataclasses
from typing import Any, TypeVar

from agent.simulator import recorded_figures

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """The rivals of a climate: their number, their kinds and their bids."""

    arrivals: float = 1.0  # times the calibrated rate of rivals per host
    on_demand_share: float = recorded_figures.ON_DEMAND_SHARE  # of the rivals that come
    taken: float = recorded_figures.TAKEN_SHARE  # hosts that an on-demand renter holds when the world begins
    fight_back: float = recorded_figures.FIGHT_BACK  # chance that a displaced rival comes back with a higher bid


@dataclasses.dataclass(frozen=True, slots=True)
class Spike:
    """Multiplies the prices of some hosts for a while."""

    at_seconds: float
    seconds: float
    factor: float
    gpus: tuple[str, ...] = ()  # names of the models hit; none means all


@dataclasses.dataclass(frozen=True, slots=True)
class Strike:
    """A host fails, or raises its price, at a set time. `aim` is "held" (a host of ours, else any) or "any".

    In a price_rise the host asks `factor` times its price. Maintenance begins `notice_seconds` after its announcement
    and takes `seconds`.
    """

    at_seconds: float
    fault: str  # "host_offline", "host_gone", "price_rise" or "maintenance"
    seconds: float = 1800.0
    aim: str = "held"
    factor: float = 1.5
    notice_seconds: float = 7200.0


@dataclasses.dataclass(frozen=True, slots=True)
class Deposit:
    """Adds to the account's credit at a set time."""

    at_seconds: float
    dollars: float


@dataclasses.dataclass(frozen=True, slots=True)
class Climate:
    """One named market: its demand, prices, hosts, account, and weather."""

    name: str = "recorded"
    about: str = ""
    hosts: int = 200
    credit: float = 100.0
    demand: Demand = Demand()
    price_walks_per_day: float = recorded_figures.PRICE_WALKS_PER_DAY
    price_step: float = recorded_figures.PRICE_STEP
    failures: float = 1.0  # times what each host's reliability implies
    container_exits_per_hour: float = 0.0
    stopped_disk_factor: float = 1.0  # the disk of a stopped instance costs so many times as much as of a running one
    is_bid_capped: bool = True  # a bid above the ask pays the ask
    race_probability: float = 0.0  # the create/start race
    pull_failure_probability: float = recorded_figures.PULL_FAILURE
    echo_lag_seconds: tuple[float, float] = recorded_figures.ECHO_LAG_SECONDS
    lowered_echo_factor: tuple[float, float] = recorded_figures.LOWERED_ECHO_FACTOR
    resume_lag_seconds: tuple[float, float] = recorded_figures.RESUME_LAG_SECONDS
    spikes: tuple[Spike, ...] = ()
    strikes: tuple[Strike, ...] = ()
    deposits: tuple[Deposit, ...] = ()
    tables: tuple[object, ...] = ()  # what it sets of single markets, each of the type that the market's record names
    # Containers run their command on this machine. Not in the repr, by which a saved market recognises its climate:
    # saved markets never run real processes.
    processes: bool = dataclasses.field(default=False, repr=False)
    weather: tuple[dict[str, Any], ...] = ()  # {at_seconds, fault, route, probability, seconds, ...}, for the surface

    def table(self, kind: type[_T]) -> _T:
        """Return the table of one market, by the table's type; without one, the table's defaults."""
        for table in self.tables:
            if isinstance(table, kind):
                return table
        return kind()

    def having(self, *tables: object) -> "Climate":
        """Return the climate with other tables of single markets."""
        kinds = tuple(map(type, tables))
        kept = tuple(table for table in self.tables if type(table) not in kinds)
        return dataclasses.replace(self, tables=(*kept, *tables))


class ClimateError(Exception):
    """A climate is not available; the text says what to do."""

    code = "bad_climate"
