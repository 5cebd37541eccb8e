"""The part of `gpubid lab fit` about hazards by age: the figures, and how well they predict later data."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.cli.shared import session

if TYPE_CHECKING:
    from agent.lab.deadline.hazard_forecast import Fitted, Prediction

SIDES = ("there", "away")


def fitted(places: Sequence[Path], instances: int) -> "Fitted | None":
    """Return the hazards of these traces, or None if capacity changes too rarely in them."""
    from agent.lab.deadline import hazard_fitting, hazard_forecast

    folders = [place for place in places if place.suffix != ".csv"]
    try:
        return hazard_forecast.fitted(hazard_fitting.sights(folders, instances)) if folders else None
    except ValueError:
        return None


def document(fitted: "Fitted | None") -> dict[str, Any] | None:
    """Return the hazards for JSON."""
    if fitted is None:
        return None
    known = fitted.known
    models = zip(known.factors, known.weights, strict=True)
    return {
        "pools": fitted.pools,
        "ages": list(known.edges),
        "losses": list(known.losses),
        "returns": list(known.returns),
        "models": [{"losses": loss, "returns": back, "weight": weight} for (loss, back), weight in models],
        "half_life_hours": known.half_life,
        "fitted_on": _prediction(fitted.within),
        "later_half": _prediction(fitted.later),
        "later_half_of_one_model": _prediction(fitted.alone),
    }


def _prediction(one: "Prediction") -> dict[str, Any]:
    bins = len(one.seen) // len(SIDES)
    ends = {
        side: {
            "seen": list(one.seen[place * bins : (place + 1) * bins]),
            "expected": list(one.expected[place * bins : (place + 1) * bins]),
        }
        for place, side in enumerate(SIDES)
    }
    return {"log_likelihood_per_pool_day": one.per_day, "ends": ends}


def lines(fitted: "Fitted") -> list[str]:
    """Return the hazards as TOML."""
    known = fitted.known
    rows = ", ".join(f"[{loss}, {back}]" for loss, back in known.factors)
    figures = [("ages", known.edges), ("losses", known.losses), ("returns", known.returns), ("weights", known.weights)]
    return [
        f"[hazards]  # {fitted.pools} pools",
        *(f"{name} = {list(values)}" for name, values in figures),
        f"factors = [{rows}]",
    ]


def show(fitted: "Fitted") -> None:
    """Print the hazards and how well they predict."""
    known, later = fitted.known, fitted.later
    table = session.table("age h", "losses an hour", "returns an hour", "losses seen/expected", "returns seen/expected")
    ends = [f"{seen}/{expected:.0f}" for seen, expected in zip(later.seen, later.expected, strict=True)]
    for place, age in enumerate(known.edges):
        row = (f"{age:.2g}+", f"{known.losses[place]:.3g}", f"{known.returns[place]:.3g}")
        session.add(table, *row, ends[place], ends[len(known.edges) + place])
    session.show(table)
    session.say(
        f"hazards of {fitted.pools} pools, with {len(known.factors)} models of how good a pool is; ends of spells in"
        f" later halves, expected by hazards of the earlier ones; log-likelihood a pool and day there"
        f" {later.per_day:.3f}, of the mean of the models {fitted.alone.per_day:.3f}"
    )
