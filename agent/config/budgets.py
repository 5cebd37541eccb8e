"""The tables of agent.toml that limit spend: [limits], and a budget for each market and workload."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from agent.config.toml_table import Table
from agent.config.value_kinds import Dollars, Price, Span, Whole, refused
from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.record import budget
from agent.domain.record.budget import Budget, Scope, Thresholds

WINDOWS = ("per_hour", "per_day", "per_month", "total")


def _reserve(value: timedelta) -> timedelta:
    if not timedelta(minutes=1) <= value <= timedelta(days=31):
        raise refused("out_of_range", "must be 1m to 31d")
    return value


def _warned_first(table: Table, cap_key: str, warn_key: str) -> None:
    cap, warn = getattr(table, cap_key), getattr(table, warn_key)
    if cap is not None and warn is not None and warn > cap:
        sentence = (
            f"{warn_key} is above {cap_key}: the cap comes before the warning; write for example {warn_key} = {cap}"
        )
        raise refused("conflict", sentence)


class BudgetTable(Table):
    """Limits on the cost of one workload or one market, in dollars. A key that is left out limits nothing."""

    max_per_hour: Annotated[Dollars, Field(ge=0, examples=[0.8])] | None = None
    """The most that it may cost per hour."""
    max_per_day: Annotated[Dollars, Field(ge=0, examples=[10.0])] | None = None
    """The most to spend on it in a UTC day."""
    max_per_month: Annotated[Dollars, Field(ge=0, examples=[200.0])] | None = None
    """The most to spend on it in a UTC month."""
    max_total: Annotated[Dollars, Field(ge=0, examples=[500.0])] | None = None
    """The most to spend on it in total, since the ledger began."""
    warn_per_hour: Annotated[Dollars, Field(ge=0, examples=[0.6])] | None = None
    """Warn when it costs this much per hour."""
    warn_per_day: Annotated[Dollars, Field(ge=0, examples=[8.0])] | None = None
    """Warn when this much is spent on it in a UTC day."""
    warn_per_month: Annotated[Dollars, Field(ge=0, examples=[150.0])] | None = None
    """Warn when this much is spent on it in a UTC month."""
    warn_total: Annotated[Dollars, Field(ge=0, examples=[400.0])] | None = None
    """Warn when this much is spent on it in total."""

    @model_validator(mode="after")
    def _warns_first(self) -> Self:
        for window in WINDOWS:
            _warned_first(self, f"max_{window}", f"warn_{window}")
        return self


class MarketBudgetTable(BudgetTable):
    """Limits on the cost of one market, in dollars. A key that is left out limits nothing."""

    min_credit: Annotated[Dollars, Field(ge=0, examples=[5.0])] | None = None
    """Credit that its account must keep, instead of `min_credit` in [limits]."""


class LimitsTable(Table):
    """Limits on all spending, in dollars. The first five have no default: a cap that nobody chose protects nobody."""

    max_price_per_instance_hour: Annotated[Price, Field(examples=[0.6])]
    """The most that one instance may cost per hour, with disk."""
    max_fleet_per_hour: Annotated[Dollars, Field(ge=0, examples=[1.0])]
    """The most that all instances together may cost per hour."""
    max_per_day: Annotated[Dollars, Field(ge=0, examples=[10.0])]
    """The most to spend in a UTC day."""
    max_per_month: Annotated[Dollars, Field(ge=0, examples=[200.0])]
    """The most to spend in a UTC month."""
    max_instances: Annotated[Whole, Field(ge=0, le=10_000, examples=[4])]
    """The most instances at one time. A bid that waits for an auction is one, because any auction may start it."""
    max_total: Annotated[Dollars, Field(ge=0, examples=[1000.0])] | None = None
    """The most to spend in total, since the ledger began."""
    warn_per_hour: Annotated[Dollars, Field(ge=0, examples=[0.8])] | None = None
    """Warn when all instances together cost this much per hour."""
    warn_per_day: Annotated[Dollars, Field(ge=0, examples=[8.0])] | None = None
    """Warn when this much is spent in a UTC day."""
    warn_per_month: Annotated[Dollars, Field(ge=0, examples=[150.0])] | None = None
    """Warn when this much is spent in a UTC month."""
    warn_total: Annotated[Dollars, Field(ge=0, examples=[800.0])] | None = None
    """Warn when this much is spent in total."""
    min_credit: Annotated[Dollars, Field(ge=0, examples=[5.0])] | None = None
    """Credit that each market's account must keep. At this floor gpubid rents nothing there and pauses leases."""
    reserve: Annotated[Span, AfterValidator(_reserve), Field(examples=["1h"])] = timedelta(hours=1)
    """Time for which all committed spend must fit into every budget; 1m to 31d."""

    @model_validator(mode="after")
    def _warns_first(self) -> Self:
        _warned_first(self, "max_fleet_per_hour", "warn_per_hour")
        for window in WINDOWS[1:]:
            _warned_first(self, f"max_{window}", f"warn_{window}")
        return self


def limits(
    table: LimitsTable, of_markets: Mapping[str, MarketBudgetTable], of_workloads: Mapping[str, BudgetTable]
) -> Limits:
    """Return all limits on spending, from the fleet's table and those of markets and workloads."""
    return Limits(
        per_instance_hour=money.per_hour(table.max_price_per_instance_hour),
        per_hour=money.per_hour(table.max_fleet_per_hour),
        per_day=money.usd(table.max_per_day),
        per_month=money.usd(table.max_per_month),
        instances=table.max_instances,
        total=_usd(table.max_total),
        soft=_soft(table),
        budgets=_budgets(of_markets, of_workloads),
        reserve=table.reserve,
        min_credit=_usd(table.min_credit),
        min_credit_of={
            name: money.usd(one.min_credit) for name, one in of_markets.items() if one.min_credit is not None
        },
    )


def _budgets(
    of_markets: Mapping[str, MarketBudgetTable], of_workloads: Mapping[str, BudgetTable]
) -> dict[Scope, Budget]:
    """Return the budgets of markets and workloads, without the empty ones."""
    tables: list[tuple[Scope, BudgetTable]] = [
        *((budget.of_market(name), table) for name, table in of_markets.items()),
        *((budget.of_workload(name), table) for name, table in of_workloads.items()),
    ]
    found = {scope: Budget(_hard(table), _soft(table)) for scope, table in tables}
    return {scope: one for scope, one in found.items() if one != Budget()}


def _hard(table: BudgetTable) -> Thresholds:
    return Thresholds(
        _rate(table.max_per_hour), _usd(table.max_per_day), _usd(table.max_per_month), _usd(table.max_total)
    )


def _soft(table: BudgetTable | LimitsTable) -> Thresholds:
    return Thresholds(
        _rate(table.warn_per_hour), _usd(table.warn_per_day), _usd(table.warn_per_month), _usd(table.warn_total)
    )


def _usd(dollars: Decimal | None) -> money.Usd | None:
    return None if dollars is None else money.usd(dollars)


def _rate(dollars: Decimal | None) -> money.UsdPerHour | None:
    return None if dollars is None else money.per_hour(dollars)
