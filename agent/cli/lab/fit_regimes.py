"""The part of `gpubid lab fit` about regimes: the figures, and how well they predict later data."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.cli.shared import session

if TYPE_CHECKING:
    from agent.lab.pools.regime_fitting import Fitted, Prediction

STATES = ("young, there", "old, there", "young, away", "old, away")


def fitted(places: Sequence[Path], instances: int) -> "Fitted | None":
    """Return the regimes of these traces, or None if capacity changes too rarely in them."""
    from agent.lab.pools import regime_fitting

    folders = [place for place in places if place.suffix != ".csv"]
    try:
        return regime_fitting.fitted(regime_fitting.sights(folders, instances)) if folders else None
    except ValueError:
        return None


def document(fitted: "Fitted | None") -> dict[str, Any] | None:
    """Return the regimes for JSON."""
    if fitted is None:
        return None
    return {
        "pools": fitted.pools,
        "hazards": [list(row) for row in fitted.known.hazards],
        "shares": list(fitted.known.shares),
        "young_hours": fitted.known.young_hours,
        "turn_hours": fitted.known.turn_hours,
        "fitted_on": _prediction(fitted.within),
        "later_half": _prediction(fitted.later),
        "later_half_of_one_regime": _prediction(fitted.alone),
    }


def _prediction(one: "Prediction") -> dict[str, Any]:
    ends = {
        state: {"seen": seen, "expected": expected}
        for state, seen, expected in zip(STATES, one.seen, one.expected, strict=True)
    }
    return {"log_likelihood_per_pool_day": one.per_day, "ends": ends}


def lines(fitted: "Fitted") -> list[str]:
    """Return the regimes as TOML."""
    rows = ", ".join(str(list(row)) for row in fitted.known.hazards)
    return [f"[regimes]  # {fitted.pools} pools", f"hazards = [{rows}]", f"shares = {list(fitted.known.shares)}"]


def show(fitted: "Fitted") -> None:
    """Print the regimes and how well they fit."""
    table = session.table("regime", "share", *(f"{state}: ends an hour" for state in STATES))
    for number, (share, row) in enumerate(zip(fitted.known.shares, fitted.known.hazards, strict=True), 1):
        session.add(table, str(number), f"{share:.2f}", *(f"{rate:.3g}" for rate in row))
    session.show(table)
    ends = ", ".join(
        f"{state} {seen}/{expected:.0f}"
        for state, seen, expected in zip(STATES, fitted.later.seen, fitted.later.expected, strict=True)
    )
    known = fitted.known
    session.say(
        f"regimes of {fitted.pools} pools: young for {known.young_hours:g} h, turning after {known.turn_hours:g} h;"
        f" ends of spells in later halves, seen/expected by regimes of the earlier ones: {ends};"
        f" log-likelihood a pool and day there {fitted.later.per_day:.3f}, of one regime {fitted.alone.per_day:.3f}"
    )
