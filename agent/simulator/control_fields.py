"""The fields of calls to the control API, checked."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class BadRequestError(ValueError):
    """A request to the control API is wrong; the text says why."""


class RivalWish(NamedTuple):
    """A rival to come to a host: dollars per hour, or None for one on demand; without `gpus` it wants the whole."""

    machine_id: int
    gpus: int | None
    bid: float | None


class Outage(NamedTuple):
    """A planned outage of a host: it begins `after` seconds and takes `seconds`."""

    machine_id: int
    after: float
    seconds: float


def only(fields: Mapping[str, Any], *names: str) -> None:
    """Refuse every other field."""
    for name in fields.keys() - set(names):
        raise BadRequestError(f"{name}: unknown key; known are {', '.join(names)}.")


def number(fields: Mapping[str, Any], name: str, *, least: float) -> float:
    """Return a number of at least `least`."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
        raise BadRequestError(f"{name}: must be a number of at least {least:g}.")
    return float(value)


def whole(fields: Mapping[str, Any], name: str, *, least: int) -> int:
    """Return a whole number of at least `least`."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadRequestError(f"{name}: must be a whole number of at least {least}.")
    return value


def rival(fields: Mapping[str, Any]) -> RivalWish:
    """Return the rival that POST /rivals describes by its host."""
    only(fields, "machine_id", "gpus", "bid", "on_demand")
    is_on_demand = fields.get("on_demand", False)
    if not isinstance(is_on_demand, bool):
        raise BadRequestError("on_demand: must be true or false.")
    if is_on_demand == ("bid" in fields):
        raise BadRequestError('bid: give either a bid or "on_demand": true.')
    gpus = whole(fields, "gpus", least=1) if "gpus" in fields else None
    bid = None if is_on_demand else number(fields, "bid", least=0.0)
    return RivalWish(whole(fields, "machine_id", least=0), gpus, bid)


def outage(fields: Mapping[str, Any]) -> Outage:
    """Return the outage that POST /maintenance announces."""
    only(fields, "machine_id", "after", "seconds")
    after, seconds = (number(fields, name, least=0.0) for name in ("after", "seconds"))
    return Outage(whole(fields, "machine_id", least=0), after, seconds)


def names_host_from(fields: Mapping[str, Any], first: int) -> bool:
    """Return whether the fields name a host whose number is `first` or higher."""
    machine_id = fields.get("machine_id")
    return isinstance(machine_id, int) and machine_id >= first
