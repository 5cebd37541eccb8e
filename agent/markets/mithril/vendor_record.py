"""Mithril's record: what the rest of the program knows about this market."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, WithJsonSchema

from agent.markets.market_record import Finding, FirstAnswers, MarketOptions, MarketRecord, Question
from agent.markets.mithril.figures import MOST_SCRIPT
from agent.markets.mithril.rules import RULES

if TYPE_CHECKING:
    from agent.clock import Clock
    from agent.markets.http_exchange import Exchange
    from agent.markets.mithril.market import MithrilMarket
    from agent.markets.port import Market
    from agent.markets.transport import Key

MOST_PER_GB_MONTH = 100
WHOLE_MACHINES = FirstAnswers("1.50", "40", "patient")
"""One A100 was at $1.00 in the recorded prices. Assumed."""


class MithrilOptions(MarketOptions):
    """The keys of `[markets.mithril]` that only this market has."""

    project: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", examples=["proj_abc123456"])] | None = None
    """Id of the project in which gpubid bids. Simulated, the only project of the key."""
    disk_per_gb_month: (
        Annotated[
            Decimal,
            Field(ge=0, le=MOST_PER_GB_MONTH, examples=[0.1]),
            WithJsonSchema({"type": "number", "minimum": 0, "maximum": MOST_PER_GB_MONTH}),
        ]
        | None
    ) = None
    """Dollars per gigabyte and month of a kept disk, from your bill: the market publishes none. Without it gpubid rents
    nothing there."""

    def on_simulated_market(self) -> Self:
        """Return the keys without the project: a simulated market has one of its own."""
        return self.model_copy(update={"project": None})


def connect(
    url: str,
    key: "Key",
    clock: "Clock",
    jitter: Callable[[], float],
    /,
    *,
    options: MarketOptions | None = None,
    through: "Exchange | None" = None,
) -> "MithrilMarket":
    """Return the market at `url`. Without `options` it can list and release, and rents nothing."""
    from agent.domain import money
    from agent.markets.mithril import market

    own = options if isinstance(options, MithrilOptions) else MithrilOptions()
    micros = None if own.disk_per_gb_month is None else money.usd(own.disk_per_gb_month).micros
    return market.connect(url, key, clock, jitter, terrain=market.Terrain(own.project or "", micros), through=through)


async def findings(market: "Market", options: MarketOptions | None, _slots: int, /) -> Sequence[Finding]:
    """Return the price of a kept disk, which no answer of the market shows, and the kinds that its quotas allow."""
    figure = options.disk_per_gb_month if isinstance(options, MithrilOptions) else None
    disk = Finding("disk", f"a kept disk is counted at ${figure} per GB and month, which is your own figure")
    if figure is None:
        sentence = "the price of a kept disk is not set, so nothing is rented there"
        disk = Finding("disk", sentence, "write [markets.mithril] disk_per_gb_month, from your bill")
    return (disk, await _quota(market))


async def _quota(market: "Market") -> Finding:
    from agent.markets import market_errors
    from agent.markets.mithril.market import MithrilMarket

    try:
        quotas = await market.spot_quotas() if isinstance(market, MithrilMarket) else ()
    except market_errors.MarketError as error:
        return Finding("quota", f"the quotas of the project cannot be read: {error}", "look at them in the console")
    full = [f"{each.name} ({each.used_quantity} of {each.total_quantity})" for each in quotas if each.is_used_up]
    if full:
        fix = "end a bid of that kind, or ask mithril for a larger quota"
        return Finding("quota", f"no further bid is accepted for {', '.join(full)}", fix)
    if not quotas:
        return Finding("quota", "the project shows no quota of spot machines", "look at it in the console")
    return Finding("quota", f"each of {len(quotas)} quotas of spot machines leaves room for a bid")


RECORD = MarketRecord(
    name="mithril",
    title="Mithril",
    url="https://api.mithril.ai",
    documentation="https://docs.mithril.ai",
    rules=RULES,
    connect=connect,
    options=MithrilOptions,
    needed_live=("project", "disk_per_gb_month"),
    questions=(
        Question("project", "The id of the project to bid in (proj_...)"),
        Question("disk_per_gb_month", "Dollars per GB and month of a kept disk, from your bill", is_number=True),
    ),
    findings=findings,
    first_answers=WHOLE_MACHINES,
    most_script=MOST_SCRIPT,
    restarts_ended=True,
    shows_gpu_use=False,
    shows_datacenter=True,
    keeps_logs=False,
    keys_at_start="let into the machine, as its user ubuntu, by its start script",
)
