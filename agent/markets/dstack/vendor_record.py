"""The record of dstack: what the rest of the program knows about this market."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, WithJsonSchema, field_validator

from agent.markets.dstack.rules import RULES, UNPROVEN_ENDS
from agent.markets.market_record import Finding, FirstAnswers, MarketOptions, MarketRecord, Question

if TYPE_CHECKING:
    from agent.clock import Clock
    from agent.markets.dstack.market import DstackMarket
    from agent.markets.http_exchange import Exchange
    from agent.markets.port import Market
    from agent.markets.transport import Key

REFUSED = ("vastai", "runpod", "dstack", "remote")
"""Clouds that are not rented at through dstack: Vast.ai and RunPod are markets of their own here, `dstack` rents
through another company, and `remote` has machines that nobody rents."""
UNPRICED = ("kubernetes", "slurm")
"""Clusters whose machines the server lists at a price of 0, so that no budget could count them."""
ON_DEMAND = FirstAnswers("1.50", "40", "ondemand")
"""An A100 on demand is at $1.29 in the price table. Assumed."""
MOST_PER_GB = 5
"""Dollars for a gigabyte of traffic above which a figure is a mistake. Assumed."""
_Cloud = Annotated[str, Field(pattern=r"^[a-z]{1,32}$")]
_PerGb = Annotated[
    Decimal, Field(ge=0, le=MOST_PER_GB), WithJsonSchema({"type": "number", "minimum": 0, "maximum": MOST_PER_GB})
]
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{1,40}$")]


class DstackOptions(MarketOptions):
    """The keys of `[markets.dstack]` that only this market has."""

    project: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", examples=["main"])] = "main"
    """Name of the project on the server."""
    fleet: Annotated[_Name | None, Field(examples=["gpubid"])] = None
    """Name of the fleet in which gpubid starts its runs. It must be made for this gpubid alone; `gpubid doctor` prints
    the file that makes it. Without it gpubid rents nothing there."""
    backends: Annotated[tuple[str, ...], Field(max_length=32, examples=[["aws", "lambda"]])] = ()
    """The clouds to rent at, as the server names them. A live market needs at least one."""
    regions: Annotated[tuple[str, ...], Field(max_length=64, examples=[["us-east-1"]])] = ()
    """The regions to rent in, as the server names them. Empty: all."""
    egress_per_gb: Annotated[dict[_Cloud, _PerGb], Field(max_length=32, examples=[{"aws": 0.09, "gcp": 0.12}])] = {}  # noqa: RUF012 - pydantic copies it
    """Dollars for a gigabyte that leaves each cloud, from your bill: the server shows none. Strategies price the upload
    of checkpoints with it; the traffic itself is not metered."""

    @field_validator("backends")
    @classmethod
    def _may_be_rented_at(cls, backends: tuple[str, ...]) -> tuple[str, ...]:
        for each in backends:
            if each in REFUSED:
                raise ValueError(f"{each} is not rented at through dstack; leave out {', '.join(REFUSED)}")
            if each in UNPRICED:
                raise ValueError(f"the server knows no price of {each}, so nothing is rented there; leave it out")
            if each in UNPROVEN_ENDS:
                raise ValueError(
                    f"after an error of {each} the server calls a machine terminated that may still bill, so nothing "
                    "is rented there; leave it out: a lease that runs there is watched and ended without it"
                )
        return backends

    def on_simulated_market(self) -> Self:
        """Return the keys as a simulated server knows them: it has one project with one fleet."""
        return self.model_copy(update={"project": "main", "fleet": "gpubid"})


def connect(
    url: str,
    key: "Key",
    clock: "Clock",
    jitter: Callable[[], float],
    /,
    *,
    options: MarketOptions | None = None,
    through: "Exchange | None" = None,
) -> "DstackMarket":
    """Return the market at `url`. Without `options` it can list and release, and rents nothing."""
    from agent.domain import money
    from agent.markets.dstack import market, orders

    own = options if isinstance(options, DstackOptions) else DstackOptions()
    egress = {name: money.usd(price).micros for name, price in own.egress_per_gb.items()}
    terrain = market.Terrain(own.project, own.fleet or "", orders.Bounds(own.backends, own.regions, egress))
    return market.connect(url, key, clock, jitter, terrain=terrain, through=through)


async def findings(market: "Market", options: MarketOptions | None, slots: int, /) -> Sequence[Finding]:
    """Return what is missing on the server before anything can be rented: a cloud, then the fleet."""
    from agent.markets.dstack.market import DstackMarket

    if not isinstance(market, DstackMarket) or not isinstance(options, DstackOptions):
        return ()
    clouds, problem = _clouds(options, await market.backends()), await market.fleet_problem()
    return (clouds, _fleet(options, problem) if problem else _room(options, market.most_machines(), slots))


def _clouds(options: DstackOptions, there: Sequence[str]) -> Finding:
    if not options.backends:
        fix = 'write [markets.dstack] backends = ["aws"], or other clouds'
        return Finding("backends", "no cloud is named, so nothing is rented", fix)
    missing = [name for name in options.backends if name not in there]
    if missing:
        sentence = f"the server has no keys of {', '.join(missing)}"
        return Finding("backends", sentence, "add the cloud to the server's config.yml and start it again")
    return Finding("backends", f"the server has the keys of {', '.join(options.backends)}")


def _room(options: DstackOptions, most: int | None, slots: int) -> Finding:
    if most is None or slots <= most:
        return Finding("fleet", f"runs start in the fleet {options.fleet}, which keeps no idle machine")
    from agent.markets.dstack import fleets

    sentence = f"the fleet {options.fleet} has room for {most} machines, but {slots} slots may run in it"
    return Finding("fleet", sentence, fleets.MORE)


def _fleet(options: DstackOptions, problem: str) -> Finding:
    from agent.markets.dstack import fleets

    if fleets.FULL in problem:
        sentence, fix = problem.split(": ", 1)
        return Finding("fleet", sentence, fix)
    made = fleets.recipe(options.fleet or "gpubid")
    return Finding("fleet", problem, f"write this line into fleet.dstack.yml: {made}; then `dstack apply -f` it")


RECORD = MarketRecord(
    name="dstack",
    title="dstack",
    url="http://127.0.0.1:3000",
    url_means="Address of your dstack server.",
    documentation="https://dstack.ai/docs",
    rules=RULES,
    connect=connect,
    options=DstackOptions,
    needed_live=("fleet", "backends"),
    needed_to_list=("project",),
    questions=(
        Question("fleet", "The name of the fleet that is made for gpubid alone", default="gpubid"),
        Question("backends", "The clouds to rent at, as the server names them (aws, lambda)", is_list=True),
    ),
    findings=findings,
    first_answers=ON_DEMAND,
    fallback_page="Other clouds, through dstack",
    restarts_ended=False,
    shows_gpu_use=False,
    shows_datacenter=True,
    opens_ports=False,
    asks_pages=True,
    own_cards=frozenset({"A100", "H100", "RTX PRO 6000"}),
    shell_by="`dstack ps` shows its run, whose name ends with -{rent}; `dstack attach RUN` opens its shell",
    keys_at_start="given to the run as the key that `dstack attach` uses (the first one alone)",
)
