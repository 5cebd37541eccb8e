"""The caps of a running daemon as JSON in micro-dollars, and back. Warnings are not included."""

from collections.abc import Mapping
from typing import Any

from agent.decide.limits.limits import Limits
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record.budget import Budget, Kind, Scope, Thresholds


def as_json(caps: Limits) -> dict[str, Any]:
    """Return caps as JSON."""
    return {
        "per_instance_hour": _micros(caps.per_instance_hour),
        **_thresholds(Thresholds(caps.per_hour, caps.per_day, caps.per_month, caps.total)),
        "instances": caps.instances,
        "budgets": [
            {"kind": scope.kind.value, "name": scope.name, **_thresholds(budget.hard)}
            for scope, budget in sorted(caps.budgets.items(), key=lambda pair: str(pair[0]))
        ],
    }


def of(said: Mapping[str, Any]) -> Limits:
    """Return the caps in such JSON.

    Raises:
        KeyError, ValueError: the JSON has no valid caps.
    """
    hard = _hard(said)
    return Limits(
        _rate(said["per_instance_hour"]),
        hard.per_hour,
        hard.per_day,
        hard.per_month,
        said["instances"],
        hard.total,
        budgets={Scope(Kind(one["kind"]), one["name"]): Budget(_hard(one)) for one in said["budgets"]},
    )


def _thresholds(hard: Thresholds) -> dict[str, int | None]:
    return {
        "per_hour": _micros(hard.per_hour),
        "per_day": _micros(hard.per_day),
        "per_month": _micros(hard.per_month),
        "total": _micros(hard.total),
    }


def _hard(said: Mapping[str, Any]) -> Thresholds:
    return Thresholds(
        _rate(said["per_hour"]), _amount(said["per_day"]), _amount(said["per_month"]), _amount(said["total"])
    )


def _micros(cap: Usd | UsdPerHour | None) -> int | None:
    return None if cap is None else cap.micros


def _rate(micros: int | None) -> UsdPerHour | None:
    return None if micros is None else UsdPerHour(micros)


def _amount(micros: int | None) -> Usd | None:
    return None if micros is None else Usd(micros)
