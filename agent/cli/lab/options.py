"""The options of a problem, defined once for every verb that runs a problem, and the syntax of lists of numbers.

A verb that runs a problem has a parameter `options: Options` and is wrapped in `taking`. A new option is a new field.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from agent.cli.shared import exits, own_strategies
from agent.lab.bench.split import Split
from agent.lab.deadline.cross_fit import CrossFit


class NumberList(tuple[float, ...]):
    """Positive numbers, written "52,70" on a command line."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the numbers as the command line has them."""
        return ",".join(f"{number:g}" for number in self)


MOST = 1e6
"""The highest number that is accepted: the hours of a century."""
DEADLINE_HOURS = NumberList((52.0, 70.0))
OVERHEAD_HOURS = NumberList((0.05, 0.2))


def _numbers(option: str) -> Callable[[str | NumberList], NumberList]:
    def parse(text: str | NumberList) -> NumberList:
        return text if isinstance(text, NumberList) else numbers(option, text)

    return parse


def numbers(option: str, text: str) -> NumberList:
    """Return the positive numbers of "52,70", or end with a message with the syntax."""
    try:
        values = NumberList(float(part) for part in text.split(","))
    except ValueError:
        values = NumberList()
    if not values or not all(0 < number < MOST for number in values):
        exits.stop(exits.BAD_INPUT, [f"{option}: write positive numbers with commas between, such as 52,70"])
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of all problems; each problem reads its own. Prices are in $/h. None means the data's own price."""

    traces: Annotated[
        Path | None,
        typer.Option(envvar="GPUBID_LAB_TRACES", help="A trace file, or a folder with a file for each pool."),
    ] = None
    job_hours: Annotated[float, typer.Option(min=0.01, help="Hours of work.")] = 48.0
    deadline_hours: Annotated[
        NumberList,
        typer.Option(parser=_numbers("--deadline-hours"), metavar="H,H", help="Hours allowed, with commas between."),
    ] = DEADLINE_HOURS
    overhead_hours: Annotated[
        NumberList,
        typer.Option(
            parser=_numbers("--overhead-hours"), metavar="H,H", help="Hours that each start loses, with commas between."
        ),
    ] = OVERHEAD_HOURS
    window_hours: Annotated[
        float | None,
        typer.Option(min=0.1, help="Hours of a window without its spare ticks; by default 70, availability 24."),
    ] = None
    stride_hours: Annotated[float, typer.Option(min=0.01, help="Hours from the start of one window to the next.")] = (
        24.0
    )
    spot_price: Annotated[float | None, typer.Option(min=0, help="$/h; the trace's own by default.")] = None
    on_demand_price: Annotated[float | None, typer.Option(min=0, help="$/h; the trace's own by default.")] = None
    cross_fit: Annotated[
        CrossFit,
        typer.Option(help="deadline: fit hazards without the zone or the days of the window; none: shipped hazards."),
    ] = CrossFit.NONE
    split: Annotated[
        Split | None, typer.Option(help="Run one half of the cases alone: fit, or judge what was chosen on the other.")
    ] = None
    pools: Annotated[
        str | None, typer.Option(help='deadline-pools: pools or zones, "a,b;a,c" for two sets; all by default.')
    ] = None
    instances: Annotated[
        int, typer.Option(min=1, help="deadline-pools: fewer instances at once count as no capacity.")
    ] = 1
    checkpoint_gb: Annotated[float, typer.Option(min=0, help="deadline-pools: gigabytes that a move carries.")] = 50.0
    egress_price: Annotated[
        float, typer.Option(min=0, help="deadline-pools: dollars for a gigabyte between regions.")
    ] = 0.02
    slots: Annotated[int, typer.Option(min=1, max=1000, help="availability: slots to keep warm.")] = 3
    cold_start_seconds: Annotated[
        float, typer.Option(min=0, help="availability: seconds from a start until the slot is warm.")
    ] = 120.0
    on_demand_multiple: Annotated[
        float,
        typer.Option(min=0.01, help="availability: the on-demand price as a multiple of the median interruptible one."),
    ] = 3.0
    target: Annotated[float, typer.Option(min=0, max=1, help="availability: share of time with all slots warm.")] = 0.99
    most_in_pool: Annotated[
        int | None,
        typer.Option(min=1, help="availability: most slots in a pool whose record has only yes or no; by default any."),
    ] = None

    market: Annotated[
        str | None, typer.Option(help="bids: the market whose auction is rehearsed; by default that of single hosts.")
    ] = None
    climates: Annotated[
        str, typer.Option(help="bids: climates of the rehearsed market, with commas between; each has its own table.")
    ] = "bidding_war,price_spike,calm"
    values: Annotated[
        str | None,
        typer.Option(help='bids: net value at these values of an hour, as shares of on-demand, such as "0.5,1,2".'),
    ] = None
    seeds: Annotated[str, typer.Option(help="bids: seeds of the rehearsed days, one day for each.")] = "1-20"
    hours: Annotated[
        float, typer.Option(min=0.01, max=1000, help="bids: hours of a rehearsed day; recorded: hours of a stretch.")
    ] = 24.0
    poll_seconds: Annotated[float, typer.Option(min=5, max=600, help="bids: seconds between two listings.")] = 60.0

    ledger: Annotated[
        Path | None, typer.Option(help="recorded: a ledger, also one in use, or a backup; by default that of --config.")
    ] = None
    workload: Annotated[
        str | None,
        typer.Option(help="bids: a workload of --config in place of the bench's; recorded: the workload to replay."),
    ] = None
    directory: own_strategies.DirectoryOption = None
    config: own_strategies.ConfigOption = None

    def folder(self) -> Path:
        """Return the folder of traces, or end with a message if none is named or it does not exist."""
        if self.traces is None:
            exits.stop(exits.BAD_INPUT, ["this problem runs on traces; name their folder with --traces DIR"])
        if not self.traces.exists():
            exits.stop(exits.BAD_INPUT, [f"{self.traces}: there is no such folder; name one with --traces DIR"])
        return self.traces

    def sets(self) -> tuple[tuple[str, ...], ...]:
        """Return the sets of pools, with one empty set for all pools, or end with a message with the syntax."""
        if self.pools is None:
            return ((),)
        pool_sets = tuple(
            tuple(name.strip() for name in part.split(",") if name.strip()) for part in self.pools.split(";")
        )
        if not all(pool_sets):
            exits.stop(exits.BAD_INPUT, ['--pools: write pools or zones with commas, sets with semicolons: "a,b;c,d"'])
        return pool_sets


def span(option: str, text: str) -> tuple[int, ...]:
    """Return the whole numbers of "1-20" or "3", or end with a message with the syntax."""
    first, _, last = text.partition("-")
    last = last or first
    is_number = all(part.isascii() and part.isdigit() and len(part) < 9 for part in (first, last))  # noqa: PLR2004
    if not is_number or not int(first) <= int(last) < int(first) + 10_000:
        exits.stop(exits.BAD_INPUT, [f"{option}: write a number or a span of at most 10,000, such as 1-20"])
    return tuple(range(int(first), int(last) + 1))


def taking(verb: Callable[..., None]) -> Callable[..., None]:
    """Return the verb with one command-line option for each field of its parameter `options`."""
    signature = inspect.signature(verb)
    names = [field.name for field in fields(Options)]

    def options(given: dict[str, Any]) -> Options:
        for name, value in given.items():
            if isinstance(value, float) and not abs(value) < MOST:
                exits.stop(exits.BAD_INPUT, [f"--{name.replace('_', '-')}: write a number below {MOST:,.0f}"])
        return Options(**given)

    ours = [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for field in fields(Options)
    ]
    theirs = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in signature.parameters.values()
        if each.name != "options"
    ]

    @functools.wraps(verb)
    def run(**given: Any) -> None:  # noqa: ANN401 - what the command line holds
        verb(options=options({name: given.pop(name) for name in names}), **given)

    run.__signature__ = signature.replace(parameters=[*theirs, *ours])  # type: ignore[attr-defined]
    return run
