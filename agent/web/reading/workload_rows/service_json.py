"""How long each service had enough warm slots, beside its target, as JSON and as a sentence."""

from collections.abc import Mapping
from typing import Any

from agent.decide.demand import demand_window
from agent.decide.service import availability_dial
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet
from agent.domain.warm_time import WarmTime
from agent.domain.work.workload import Workload


def recorded(known: Mapping[str, WarmTime]) -> list[dict[str, Any]]:
    """Return a row for each service with a record, without targets, which only a strategy's file has."""
    return [
        {
            "workload": name,
            "availability": time.availability,
            "wanted_hours": time.wanted_hours,
            "short_hours": time.short_hours,
            "sentence": "" if time.availability is None else _achieved(time),
        }
        for name, time in sorted(known.items())
    ]


def of(fleet: Fleet, work: Workload, chosen: Tuned) -> list[dict[str, Any]]:
    """Return the warm slots of a service whose strategy keeps some, with the dial of its target; else nothing."""
    needed = chosen.params.warm_slots(demand_window.seen_by_strategy(fleet, work).slots)
    if not needed:
        return []
    time, target = fleet.warm.get(work.name), chosen.params.warm_target()
    dial = availability_dial.of(target, time) if target else None
    sentences = [f"{needed} of its slots are kept warm"]
    sentences += [] if dial is None else [f"{dial.sentence}; an hour short counts as {dial.worth:.3g} h on demand"]
    sentences += [_achieved(time)] if dial is None and time is not None and time.availability is not None else []
    row = {
        "needed": needed,
        "target": target or None,
        "availability": None if time is None else time.availability,
        "wanted_hours": 0.0 if time is None else time.wanted_hours,
        "worth_hours_on_demand": None if dial is None else dial.worth,
        "sentence": ": ".join(sentences),
    }
    return [row]


def _achieved(time: WarmTime) -> str:
    return f"enough slots were warm in {time.availability:.2%} of {time.wanted_hours:.1f} h"
