"""A climate: a named simulated market, read from climates/*.toml.

Every key has a default. The defaults are the calibrated market (see recorded_figures.py), and climates/recorded.toml
sets nothing else. Every other climate sets the keys in which it differs.
"""

import dataclasses
import functools
import importlib.resources
import tomllib
from typing import Any, TypeVar, cast

from agent.simulator import recorded_figures, runpod_modes

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
class Turn:
    """From a set time on RunPod sells something else: a mode of runpod_modes.py."""

    at_seconds: float
    mode: str


@dataclasses.dataclass(frozen=True, slots=True)
class Runpod:
    """The settings of the RunPod side alone. Demand, price spikes and strikes apply to both sides."""

    credit: float = 100.0
    scale: float = 1.0  # times the hosts of each type
    mode: str = "spot_discontinued"  # what is sold, today's by default: see runpod_modes.py
    low_balance: str = "terminate"  # without credit: "terminate" ends pods without a network volume, or "stop"
    bid_share: float = 0.3  # of the renters that come, those who bid
    bills_silent_hosts: bool = False  # undocumented; renters claim the money from support afterwards


@dataclasses.dataclass(frozen=True, slots=True)
class Mithril:
    """The settings of the Mithril side alone. Arrivals and price spikes apply to all sides."""

    load: float = recorded_figures.MITHRIL_LOAD  # instances that rivals want in the long run, over those that there are
    reservations: float = 1.0  # times the assumed rate of reservations
    tells_win_price: float = 0.0  # share of the pools that tell the lowest allocated bid and the price to win
    bills_notice: bool = True  # undocumented: the minutes between the notice and the end


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
    is_bid_capped: bool = True  # a bid above the ask pays the ask
    race_probability: float = 0.0  # the create/start race
    pull_failure_probability: float = recorded_figures.PULL_FAILURE
    echo_lag_seconds: tuple[float, float] = recorded_figures.ECHO_LAG_SECONDS
    lowered_echo_factor: tuple[float, float] = recorded_figures.LOWERED_ECHO_FACTOR
    resume_lag_seconds: tuple[float, float] = recorded_figures.RESUME_LAG_SECONDS
    spikes: tuple[Spike, ...] = ()
    strikes: tuple[Strike, ...] = ()
    deposits: tuple[Deposit, ...] = ()
    runpod: Runpod = Runpod()
    mithril: Mithril = Mithril()
    turns: tuple[Turn, ...] = ()
    # Containers run their command on this machine. Not in the repr, by which a saved market recognises its climate:
    # saved markets never run real processes.
    processes: bool = dataclasses.field(default=False, repr=False)
    weather: tuple[dict[str, Any], ...] = ()  # {at_seconds, fault, route, probability, seconds, ...}, for the surface


_PARTS: dict[str, type[Any]] = {"spikes": Spike, "strikes": Strike, "deposits": Deposit, "turns": Turn}
_TABLES: dict[str, type[Any]] = {"demand": Demand, "runpod": Runpod, "mithril": Mithril}
_ONES = {"spike": "spikes", "strike": "strikes", "deposit": "deposits", "turn": "turns"}


class ClimateError(Exception):
    """A climate is not available; the text says what to do."""

    code = "bad_climate"


def names() -> list[str]:
    """Return the names of the shipped climates."""
    folder = importlib.resources.files("agent.simulator") / "climates"
    return sorted(path.name.removesuffix(".toml") for path in folder.iterdir() if path.name.endswith(".toml"))


@functools.cache
def named(name: str) -> Climate:
    """Return a shipped climate by its name."""
    if name not in names():
        raise ClimateError(f"There is no climate {name!r}; known: {', '.join(names())}.")
    text = (importlib.resources.files("agent.simulator") / "climates" / f"{name}.toml").read_text(encoding="utf-8")
    return parse(text, name)


def parse(text: str, name: str) -> Climate:
    """Read a climate from TOML. An unknown key is an error."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClimateError(f"{name}: not TOML ({error}).") from error
    values: dict[str, Any] = {"name": name}
    for key, value in table.items():
        if key in _TABLES:
            values[key] = _made(_TABLES[key], value, f"{name}: [{key}]")
        elif key in _ONES:
            part = _PARTS[_ONES[key]]
            values[_ONES[key]] = tuple(_made(part, row, f"{name}: [[{key}]]") for row in value)
        else:
            values[key] = tuple(value) if isinstance(value, list) else value
    climate = _made(Climate, values, name)
    for mode in (climate.runpod.mode, *(turn.mode for turn in climate.turns)):
        if mode not in runpod_modes.NAMES:
            raise ClimateError(f"{name}: mode: {mode!r} is unknown; there are {', '.join(runpod_modes.NAMES)}.")
    if not isinstance(climate.processes, bool):
        raise ClimateError(f"{name}: processes: must be true or false, not {climate.processes!r}.")
    return climate


def _made(kind: type[_T], values: dict[str, Any], where: str) -> _T:
    """Build a part from its table, lists as tuples."""
    known = [field.name for field in dataclasses.fields(cast(Any, kind))]
    for key in values:
        if key not in known:
            raise ClimateError(f"{where}: unknown key {key!r}; known: {', '.join(known)}.")
    try:
        return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})
    except TypeError as error:
        raise ClimateError(f"{where}: {error}") from error
