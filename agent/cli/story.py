"""A rehearsal told on one page: what happened, what the agent did and why, what it cost, what it saved."""

from collections.abc import Iterator
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from agent.cli.rehearsal import Rehearsal
from agent.domain.event import Event
from agent.domain.money import total

MOST_ROWS = 40
TOLD = {
    "lease.opened": ("rent", "green"),
    "lease.running": ("running", "green"),
    "lease.interrupted": ("INTERRUPTED", "red"),
    "lease.start_lost": ("lost while starting", "red"),
    "lease.failed": ("start failed", "red"),
    "lease.resumed": ("resumed in place", "green"),
    "lease.rebid": ("rebid", "cyan"),
    "lease.paused": ("pause", "yellow"),
    "lease.queued": ("start queued", "yellow"),
    "lease.missing": ("not listed", "yellow"),
    "lease.gone": ("gone", "red"),
    "lease.offline": ("host offline", "yellow"),
    "lease.exited": ("container ended", "yellow"),
    "lease.leftover": ("leftover of a refused bid", "yellow"),
    "lease.released_by_us": ("release", "blue"),
    "intent.rejected": ("refused", "yellow"),
    "intent.in_doubt": ("IN DOUBT", "red"),
    "intent.confirmed": ("doubt settled: done", "green"),
    "intent.void": ("doubt settled: not done", "green"),
    "orphan.seen": ("orphan", "red"),
}


def tell(told: Rehearsal, console: Console) -> None:
    """Print the page."""
    figures = told.figures
    title = f"{figures['simulated_hours']:g} h of {', '.join(figures['strategy'])} in {figures['climate']}, seed {figures['seed']}"
    console.print(
        Panel(Group(*_page(told)), title=f"gpubid rehearsal: {title}", subtitle="simulated market, no real money")
    )


def _page(told: Rehearsal) -> Iterator[RenderableType]:
    yield _timeline(told.events)
    yield Text()
    yield _bill(told)
    yield Text()
    yield Text(_verdict(told))


def _timeline(events: tuple[Event, ...]) -> Table:
    table = Table(box=None, pad_edge=False, expand=True)
    for name, ratio in (("time", None), ("slot", None), ("what", None), ("host", None), ("price", None), ("why", 1)):
        table.add_column(name, ratio=ratio, no_wrap=name != "why", overflow="fold" if name == "why" else "ellipsis")
    shown = [event for event in events if event.kind in TOLD or event.kind.startswith("alert.")]
    for event in shown[:MOST_ROWS]:
        what, colour = TOLD.get(event.kind, (event.kind, "red"))
        slot = f"{event.workload}/{event.slot}" if event.workload else ""
        table.add_row(_clock(event.at), slot, Text(what, style=colour), event.host_id, _price(event), _why(event))
    if len(shown) > MOST_ROWS:
        table.add_row("", "", f"... {len(shown) - MOST_ROWS} more", "", "", "see `gpubid rehearse --json`")
    return table


def _clock(at: datetime) -> str:
    return at.strftime("%d %H:%M:%S")


def _price(event: Event) -> str:
    return str(event.bid) if event.bid is not None else ""


def _why(event: Event) -> str:
    """Return the cause with its evidence, or the reason; text from a market is shown plain, never as markup."""
    if event.cause is not None:
        return f"{event.cause.value}: {event.evidence}"
    return event.reason if event.kind != "lease.running" else ""


def _bill(told: Rehearsal) -> Table:
    table = Table(title="Bill, as the ledger counted it", title_justify="left", box=None, pad_edge=False)
    for name in ("lease", "GPU", "disk", "traffic", "sum", "ran"):
        table.add_column(name, justify="left" if name == "lease" else "right")
    for line in told.spend:
        hours = f"{line.running_seconds / 3600:.2f} h"
        table.add_row(line.key, str(line.gpu), str(line.disk), str(line.traffic), str(line.amount), hours)
    sums = [total(getattr(line, part) for line in told.spend) for part in ("gpu", "disk", "traffic", "amount")]
    table.add_row("all", *(str(part) for part in sums), "", style="bold")
    return table


def _verdict(told: Rehearsal) -> str:
    figures = told.figures
    causes = ", ".join(f"{count} {cause}" for cause, count in sorted(figures["interruptions"].items())) or "none"
    slots = figures["slots"] * figures["simulated_hours"]
    lines = [
        f"Useful: {figures['useful_hours']:.2f} of {slots:g} slot-hours ({figures['useful_hours'] / slots:.0%}); "
        f"interruptions: {causes}; resumed in place {figures['resumed_in_place']}, moved {figures['moved']}.",
        f"Spent ${figures['spend']:.4f} by our own count; the market charged ${figures['charged']:.4f}. "
        f"The same useful hours on demand: ${figures['ondemand_cost']:.4f}{_saved(figures['savings_ratio'])}",
        f"Rented twice for one decision: {figures['double_rents']}. Billing and unknown to us: {figures['orphans']}.",
        f"{figures['calls']} calls, {figures['search_rows']} search rows, {figures['wall_seconds']:.1f} s of your time.",
    ]
    return "\n".join(lines)


def _saved(ratio: float | None) -> str:
    if ratio is None:
        return "."
    return f", so this way saved {ratio:.0%}." if ratio >= 0 else f", so this way cost {-ratio:.0%} more."
