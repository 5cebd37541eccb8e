"""A climate: a named simulated market, read from climates/*.toml.

Every key has a default; the defaults are the calibrated market (see figures.py) and climates/recorded.toml is nothing
but them. A climate says in which way it departs.
"""

import dataclasses
import functools
import importlib.resources
import pathlib
import tomllib
from typing import Any

from agent.simulator import figures


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """Say how many rivals come, of what kind, and how they fight."""

    arrivals: float = 1.0  # times the calibrated rate of rivals per host
    on_demand_share: float = figures.ON_DEMAND_SHARE  # of the rivals that come
    taken: float = figures.TAKEN_SHARE  # hosts that an on-demand renter holds when the world begins
    fight_back: float = figures.FIGHT_BACK  # chance that a displaced rival comes back with a higher bid


@dataclasses.dataclass(frozen=True, slots=True)
class Spike:
    """Multiply the prices of the hosts it hits for a while."""

    at_seconds: float
    seconds: float
    factor: float
    gpus: tuple[str, ...] = ()  # names of the models hit; none means all


@dataclasses.dataclass(frozen=True, slots=True)
class Strike:
    """Let a host fail at a set time. `aim` is "held" (a host of ours, else any) or "any"."""

    at_seconds: float
    fault: str  # "host_offline" or "host_gone"
    seconds: float = 1800.0
    aim: str = "held"


@dataclasses.dataclass(frozen=True, slots=True)
class Deposit:
    """Add to the account's credit at a set time."""

    at_seconds: float
    dollars: float


@dataclasses.dataclass(frozen=True, slots=True)
class Climate:
    """Hold one named market: its demand, prices, hosts, account, and the weather that blows in it."""

    name: str = "recorded"
    about: str = ""
    hosts: int = 200
    credit: float = 100.0
    demand: Demand = Demand()
    price_walks_per_day: float = figures.PRICE_WALKS_PER_DAY
    price_step: float = figures.PRICE_STEP
    failures: float = 1.0  # times what each host's reliability implies
    container_exits_per_hour: float = 0.0
    is_bid_capped: bool = True  # a bid above the ask pays the ask
    race_probability: float = 0.0  # the create/start race
    pull_failure_probability: float = figures.PULL_FAILURE
    echo_lag_seconds: tuple[float, float] = figures.ECHO_LAG_SECONDS
    lowered_echo_factor: tuple[float, float] = figures.LOWERED_ECHO_FACTOR
    resume_lag_seconds: tuple[float, float] = figures.RESUME_LAG_SECONDS
    spikes: tuple[Spike, ...] = ()
    strikes: tuple[Strike, ...] = ()
    deposits: tuple[Deposit, ...] = ()
    weather: tuple[dict[str, Any], ...] = ()  # {at_seconds, fault, route, probability, seconds, ...}, for the surface
