"""The tables of agent.toml that bound spend: [limits], and a budget for each market and workload."""

from datetime import timedelta
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from agent.config.kinds import Dollars, Price, Span, Whole, refused
from agent.config.toml_table import Table

WINDOWS = ("per_hour", "per_day", "per_month", "total")


def _reserve(value: timedelta) -> timedelta:
    if not timedelta(minutes=1) <= value <= timedelta(days=31):
        raise refused("out_of_range", "must be 1m to 31d")
    return value


def _warned_first(table: Table, cap_key: str, warn_key: str) -> None:
    cap, warn = getattr(table, cap_key), getattr(table, warn_key)
    if cap is not None and warn is not None and warn > cap:
        sentence = f"{warn_key} is above {cap_key}: nobody would be told first; write for example {warn_key} = {cap}"
        raise refused("conflict", sentence)


class BudgetTable(Table):
    """What may be spent on one workload or one market, in dollars; a key that is left out bounds nothing."""

    max_per_hour: Annotated[Dollars, Field(ge=0, examples=[0.8])] | None = None
    """The most it may cost per hour."""
    max_per_day: Annotated[Dollars, Field(ge=0, examples=[10.0])] | None = None
    """The most to spend on it in a UTC day."""
    max_per_month: Annotated[Dollars, Field(ge=0, examples=[200.0])] | None = None
    """The most to spend on it in a UTC month."""
    max_total: Annotated[Dollars, Field(ge=0, examples=[500.0])] | None = None
    """The most to spend on it altogether, since the ledger began."""
    warn_per_hour: Annotated[Dollars, Field(ge=0, examples=[0.6])] | None = None
    """A person is told when it costs so much per hour."""
    warn_per_day: Annotated[Dollars, Field(ge=0, examples=[8.0])] | None = None
    """A person is told when so much is spent on it in a UTC day."""
    warn_per_month: Annotated[Dollars, Field(ge=0, examples=[150.0])] | None = None
    """A person is told when so much is spent on it in a UTC month."""
    warn_total: Annotated[Dollars, Field(ge=0, examples=[400.0])] | None = None
    """A person is told when so much is spent on it altogether."""

    @model_validator(mode="after")
    def _tells_first(self) -> Self:
        for window in WINDOWS:
            _warned_first(self, f"max_{window}", f"warn_{window}")
        return self


class MarketBudgetTable(BudgetTable):
    """What may be spent on one market, in dollars; a key that is left out bounds nothing."""

    min_credit: Annotated[Dollars, Field(ge=0, examples=[5.0])] | None = None
    """What its account keeps, in place of `min_credit` in [limits]."""


class LimitsTable(Table):
    """What may never be exceeded, in dollars; the first five have no default, a cap nobody chose protects nobody."""

    max_price_per_instance_hour: Annotated[Price, Field(examples=[0.6])]
    """The most one instance may cost per hour, disk included."""
    max_fleet_per_hour: Annotated[Dollars, Field(ge=0, examples=[1.0])]
    """The most everything together may cost per hour."""
    max_per_day: Annotated[Dollars, Field(ge=0, examples=[10.0])]
    """The most to spend in a UTC day."""
    max_per_month: Annotated[Dollars, Field(ge=0, examples=[200.0])]
    """The most to spend in a UTC month."""
    max_instances: Annotated[Whole, Field(ge=0, le=10_000, examples=[4])]
    """The most instances at one time."""
    max_total: Annotated[Dollars, Field(ge=0, examples=[1000.0])] | None = None
    """The most to spend altogether, since the ledger began."""
    warn_per_hour: Annotated[Dollars, Field(ge=0, examples=[0.8])] | None = None
    """A person is told when everything together costs so much per hour."""
    warn_per_day: Annotated[Dollars, Field(ge=0, examples=[8.0])] | None = None
    """A person is told when so much is spent in a UTC day."""
    warn_per_month: Annotated[Dollars, Field(ge=0, examples=[150.0])] | None = None
    """A person is told when so much is spent in a UTC month."""
    warn_total: Annotated[Dollars, Field(ge=0, examples=[800.0])] | None = None
    """A person is told when so much is spent altogether."""
    min_credit: Annotated[Dollars, Field(ge=0, examples=[5.0])] | None = None
    """What each market's account keeps: at this floor nothing is rented there, and what runs there is paused."""
    reserve: Annotated[Span, AfterValidator(_reserve), Field(examples=["1h"])] = timedelta(hours=1)
    """How far ahead money is set aside: everything committed must fit every budget for so long; 1m to 31d."""

    @model_validator(mode="after")
    def _tells_first(self) -> Self:
        _warned_first(self, "max_fleet_per_hour", "warn_per_hour")
        for window in WINDOWS[1:]:
            _warned_first(self, f"max_{window}", f"warn_{window}")
        return self
