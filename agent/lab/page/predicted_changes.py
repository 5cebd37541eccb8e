"""Predicted and seen losses and returns of capacity. Each zone's hazards are fitted on the other zones only."""

from collections.abc import Sequence

import numpy as np

from agent.decide.deadline.hazards import Hazards
from agent.lab.deadline import deadline_folds
from agent.lab.deadline.cross_fit import CrossFit
from agent.lab.page import calibration
from agent.lab.page.html import Plot
from agent.lab.traces import survival
from agent.lab.traces.trace_files import Trace

SIDES = {True: "capacity that is there", False: "capacity that is away"}
AGES = np.append(0.0, np.geomspace(0.05, calibration.HOURS, 120))
"""Hours at which a prediction is drawn."""


def plot(traces: Sequence[Trace], name: str) -> Plot | None:
    """Return the picture, or None if capacity never changed."""
    found, fitted = [], _fitted(traces)
    for of_capacity, what in SIDES.items():
        spells = {trace.pool: _spells(trace, of_capacity=of_capacity) for trace in traces}
        seen = [spell for each in spells.values() for spell in each]
        if not seen:
            continue
        predicted = _predicted(fitted, spells, of_capacity=of_capacity) if fitted else []
        found.append(calibration.Lasting(what, survival.kaplan_meier(seen), AGES.tolist() if fitted else (), predicted))
    how = "for each zone by hazards fitted on the others" if fitted else "not at all: there is one zone alone"
    return calibration.plot(found, how, name)


def shares(hazards: Hazards, ages: survival.Array, *, of_capacity: bool) -> survival.Array:
    """Return the share (ages,) of spells that last longer, in a pool that was not seen yet.

    Models are weighted by their number of spells and not by their time: a pool with many changes has more spells.
    """
    ends = np.append(hazards.edges[1:], np.inf)
    inside = np.clip(ages[:, None] - np.asarray(hazards.edges), 0.0, ends - np.asarray(hazards.edges))
    rates = hazards.loss_rates if of_capacity else hazards.return_rates
    cycle = _mean_hours(hazards, hazards.loss_rates) + _mean_hours(hazards, hazards.return_rates)
    weights = np.asarray(hazards.weights) / cycle
    found: survival.Array = np.exp(-inside @ rates) @ (weights / weights.sum())
    return found


def _mean_hours(hazards: Hazards, rates: survival.Array) -> survival.Array:
    """Return the average hours of a spell, (models,), at rates (bins, models): each bin by its integral."""
    lengths = np.append(np.diff(hazards.edges), np.inf)[:, None]
    begun = np.exp(-np.cumsum(np.vstack([np.zeros(rates.shape[1]), (rates * lengths)[:-1]]), axis=0))
    found: survival.Array = (begun * -np.expm1(-rates * lengths) / rates).sum(axis=0)
    return found


def _fitted(traces: Sequence[Trace]) -> dict[str, Hazards]:
    """Return the hazards for each zone, fitted on all others; none if there is only one zone, or nothing to fit on."""
    zones = sorted({deadline_folds.zone(trace.pool) for trace in traces})
    try:
        return {
            zone: deadline_folds.fitted(traces, deadline_folds.Fold(zone=zone), CrossFit.POOL, 0.0) for zone in zones
        }
    except ValueError:
        return {}


def _predicted(
    fitted: dict[str, Hazards], spells: dict[str, list[survival.Spell]], *, of_capacity: bool
) -> list[float]:
    """Return the predicted shares, with each pool weighted by its number of spells."""
    counts = [len(each) for each in spells.values()]
    drawn = [shares(fitted[deadline_folds.zone(pool)], AGES, of_capacity=of_capacity) for pool in spells]
    return [float(share) for share in np.average(drawn, axis=0, weights=counts)]


def _spells(trace: Trace, *, of_capacity: bool) -> list[survival.Spell]:
    return survival.spells(trace.available > 0, trace.gap_seconds / 3600, of_capacity=of_capacity)
