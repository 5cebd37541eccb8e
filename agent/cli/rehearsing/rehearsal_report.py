"""The report of a rehearsal: its workloads and market, its events with reasons, its cost and savings."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from agent.cli.rehearsing import event_timeline
from agent.cli.rehearsing.rehearsal import Rehearsal
from agent.cli.shared import session
from agent.decide.moves import recovery
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd, total
from agent.simulator import climate_files

MOST_ROWS = 40
LEGEND = (
    "OUTBID: somebody bids more. DISPLACED: somebody rents the GPU on demand, and no bid wins it back. Either way the "
    "container stops, and its disk stays and is paid for. raise the bid: pay more and run on where the disk is. "
    "move: rent elsewhere, and release the old lease when the new one runs; until then it is parked, so that it cannot "
    "start by itself. up after: from that step to a running container. Ways are compared in dollars over the next "
    "{horizon:g} h, in which an hour without work counts as the strategy says (idle_worth)."
)


BORDER = 4
"""Characters of the width that the frame around the page takes."""


def print_report(rehearsed: Rehearsal, console: Console) -> None:
    """Print the page."""
    figures = rehearsed.figures
    title = f"gpubid rehearsal: {figures['climate']}, {figures['simulated_hours']:g} hours, seed {figures['seed']}"
    page = _page(rehearsed, console.width - BORDER)
    console.print(Panel(Group(*page), title=title, subtitle="simulated market, no real money"))


def fitted(table: Table, width: int) -> RenderableType:
    """Return a table, or its rows one below the other if its figures do not fit into the width."""
    if session.least_width(table) > width:
        return Text("\n".join(session.stacked(table)), overflow="fold")
    table.expand = any(column.ratio for column in table.columns)
    return table


def _page(rehearsed: Rehearsal, width: int) -> Iterator[RenderableType]:
    yield Text(_subject(rehearsed))
    yield Text(LEGEND.format(horizon=recovery.HORIZON_HOURS), style="dim")
    yield Text()
    yield fitted(_timeline(event_timeline.fold(rehearsed.events, rehearsed.leases)), width)
    yield Text()
    yield fitted(_bill(rehearsed), width)
    yield Text()
    yield Text(_verdict(rehearsed))


def _subject(rehearsed: Rehearsal) -> str:
    """Return the sentence about the workloads and the market."""
    named = climate_files.named(rehearsed.figures["climate"])
    work = "; ".join(
        f"{one.name}, {one.slots} slot{'s' if one.slots > 1 else ''} of {one.requirements.gpus} x "
        f"{' or '.join(str(model) for model in one.requirements.gpu_models) or 'any GPU'}, "
        f"strategy {one.strategy}, at {one.prices}"
        for one in rehearsed.config.workloads
    )
    return (
        f"Workload: {work}.\n"
        f"Market: {rehearsed.figures['hosts']} simulated hosts over real HTTP; "
        f"{named.about or 'the calibrated figures'}."
    )


def _timeline(rows: list[event_timeline.Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    several = len({row.slot for row in rows if row.slot}) > 1
    names = ["time", *(["slot"] if several else []), "what", "host", "price", "up after", "why"]
    for name in names:
        table.add_column(name, no_wrap=name != "why", overflow="fold", ratio=1 if name == "why" else None)
    for row in rows[:MOST_ROWS]:
        slot = [row.slot] if several else []
        what = Text(row.what, style=row.colour)
        table.add_row(_clock(row.at), *slot, what, row.host, row.price, _span(row.waited), Text(row.why))
    if len(rows) > MOST_ROWS:
        rest = f"... and {len(rows) - MOST_ROWS} more: --keep-ledger DIR keeps the ledger with all of them"
        table.add_row("", *([""] if several else []), "...", "", "", "", rest)
    return table


def _clock(at: datetime) -> str:
    return at.strftime("%d %H:%M:%S")


def _span(span: timedelta | None) -> str:
    if span is None:
        return ""
    minutes, seconds = divmod(round(span.total_seconds()), 60)
    return f"{minutes} m {seconds:02} s" if minutes else f"{seconds} s"


def _bill(rehearsed: Rehearsal) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("the ledger's bill", "leases", "GPU", "disk", "traffic", "sum", "ran"):
        table.add_column(name, justify="left" if name == "the ledger's bill" else "right", no_wrap=True)
    names = {Tenure.INTERRUPTIBLE: "interruptible", Tenure.ON_DEMAND: "on demand", Tenure.RESERVED: "reserved"}
    tenures = {lease.lease_id: lease.tenure for lease in rehearsed.leases}
    for tenure, name in names.items():
        lines = [line for line in rehearsed.spend if tenures.get(line.key) is tenure]
        if lines:
            sums = [_sum([getattr(line, part) for line in lines]) for part in ("gpu", "disk", "traffic", "amount")]
            hours = sum(line.running_seconds for line in lines) / 3600
            table.add_row(name, str(len({line.key for line in lines})), *sums, f"{hours:.2f} h")
    sums = [_sum([getattr(line, part) for line in rehearsed.spend]) for part in ("gpu", "disk", "traffic", "amount")]
    hours = sum(line.running_seconds for line in rehearsed.spend) / 3600
    table.add_row("all", str(len({line.key for line in rehearsed.spend})), *sums, f"{hours:.2f} h", style="bold")
    return table


def _sum(amounts: list[Usd]) -> str:
    return str(total(amounts))


def _verdict(rehearsed: Rehearsal) -> str:
    figures = rehearsed.figures
    causes = ", ".join(f"{count} {cause}" for cause, count in sorted(figures["interruptions"].items())) or "none"
    slots = figures["slots"] * figures["simulated_hours"]
    useful = (
        f"Useful: {figures['useful_hours']:.2f} of {slots:g} slot-hours ({figures['useful_hours'] / slots:.0%}); "
        f"interruptions: {causes}; resumed in place {figures['resumed_in_place']}, moved {figures['moved']}."
    )
    spent = (
        f"Spent ${figures['spend']:.4f} by our own count, made without reading the market's bill; the market charged "
        f"${figures['charged']:.4f}."
    )
    instead = "Nothing that matches was sold on demand, so there is no ask to compare with."
    if figures["ondemand_cost"] is not None:
        instead = (
            f"The same useful hours at the cheapest matching ask of the time: ${figures['ondemand_cost']:.4f}"
            f"{_saved(figures['savings_ratio'])}"
        )
    safety = (
        f"Rented twice for one decision: {figures['double_rents']}. Billing and unknown to us: {figures['orphans']}.\n"
        f"{figures['calls']} calls, {figures['search_rows']} search rows, {figures['wall_seconds']:.1f} s of your time."
    )
    return f"{useful}\n{spent}\n{instead}\n{safety}"


def _saved(ratio: float | None) -> str:
    if ratio is None:
        return "."
    return f"; this way saved {ratio:.0%}." if ratio >= 0 else f"; this way cost {-ratio:.0%} more."
