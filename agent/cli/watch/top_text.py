"""The lines of `gpubid top`, from a document of the feed. Nothing is computed; figures become text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from agent.act.orders import order_meanings
from agent.cli.shared import order_text
from agent.cli.watch import fleet_watch, top_rows
from agent.domain.record.hold import TargetKind, Word
from agent.domain.work.order import Order
from agent.telemetry.plain_text import plain

BARS = "▁▂▃▄▅▆▇█"
TREND = 8
"""Characters of a sparkline."""
MOST_ALERTS = 3
COLUMNS = ("slot", "state", "host", "$/h", "bid", "floor", "useful", "next")
DROPPED = ("useful", "floor", "bid", "next", "host")
"""Columns in the order in which a narrow terminal drops them. The selected slot shows all of them."""
NEXT = 13
"""The least characters of the next decision. Only this column may be cut; the selected slot shows it whole."""


def head(fleet: Mapping[str, Any], silent_seconds: float, *, is_gone: bool, stands_by: str = "") -> str:
    """Return the first line: whether the figures are current, and how many slots run.

    `stands_by` is the sentence of a daemon that has lost the lead.
    """
    of = f"figures of {fleet['as_of'][:19]}Z"
    if stands_by:
        return f"STALE, {of}: {plain(stands_by)}"
    if is_gone:
        return f"STALE: no daemon answers for {silent_seconds:.0f} s, {of}"
    if fleet["is_stale"]:
        last = fleet["last_cycle_at"]
        return f"STALE: {f'no cycle has ended since {last[:19]}Z' if last else 'no cycle has ended yet'}, {of}"
    return f"gpubid {fleet['version']}: {fleet['running']} of {fleet['wanted']} slot(s) run, {of}"


def alerts(fleet: Mapping[str, Any]) -> str:
    """Return the alerts in at most a few lines, also a kill and a refused configuration, and who leads."""
    lines = [plain(f"! {each['about']}: {each['sentence']}") for each in fleet["alerts"]]
    more = len(lines) - MOST_ALERTS
    last = [f"! and {more} more: `gpubid status`"] if more > 0 else []
    return "\n".join([*lines[:MOST_ALERTS], *last, *map(plain, fleet_watch.leader(fleet))])


def money(fleet: Mapping[str, Any]) -> str:
    """Return spend against caps and the runway."""
    return fleet_watch.money(fleet["money"])


def table(fleet: Mapping[str, Any], width: int) -> tuple[list[tuple[str, int]], list[list[str]]]:
    """Return the columns that fit into `width`, each with its own width, and the rows. No id and no figure is cut."""
    rows = [cells(row[0]) if len(row) == 1 else _shared(row) for row in top_rows.of(fleet)]
    needed = {name: max(map(cell_len, (name, *each))) + 1 for name, *each in zip(COLUMNS, *rows, strict=True)}
    widths = needed | {"next": min(needed["next"], NEXT + 1)}
    kept = list(COLUMNS)
    for name in DROPPED:
        if sum(widths[each] for each in kept) <= width:
            break
        kept.remove(name)
    spare = max(width - sum(widths[each] for each in kept), 0)
    widths["next"] = min(needed["next"], widths["next"] + spare)
    numbers = [COLUMNS.index(name) for name in kept]
    return [(name, widths[name]) for name in kept], [[row[number] for number in numbers] for row in rows]


def cells(slot: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of one slot."""
    decision = slot["decision"]
    return (
        plain(slot["slot"]) if slot["is_configured"] else f"{plain(slot['slot'])}?",
        slot["state"],
        plain(f"{slot['market']}/{slot['host']}") if slot["host"] else "-",
        f"{slot['dollars_per_hour']:.4f}",
        "-" if slot["bid"] is None else f"{slot['bid']:.4f}",
        sparkline([each["floor"] for each in slot["prices"]]),
        "-" if slot["useful_share"] is None else f"{slot['useful_share']:.0%}",
        f"{decision['kind']} {decision['code']}" if decision else "-",
    )


def _shared(row: top_rows.Row) -> tuple[str, ...]:
    """Return the cells of empty slots that share a row."""
    first = cells(row[0])
    return (plain(top_rows.workload(row[0])), f"{len(row)} empty", *first[2:])


def detail(row: top_rows.Row) -> str:
    """Return the selected slot: its host, its prices of the last day, and its next decision with the reason.

    Of several empty slots it has the numbers, and the reason of the first.
    """
    lines = [*_detail(row[0])]
    if len(row) > 1:
        lines[0] = f"{top_rows.workload(row[0])}: {len(row)} empty slots, {top_rows.numbers(row)}"
    return "\n".join(map(plain, lines))


def _detail(slot: Mapping[str, Any]) -> Iterator[str]:
    if slot["lease"]:
        where = f"{slot['gpus']}x {slot['gpu']} on {slot['market']}/{slot['host']}"
        yield f"{slot['slot']} {slot['lease']}: {where}, {slot['tenure']}, {slot['state']} since {slot['since'][:19]}Z"
        trends = ((name, slot[name], [each[name] for each in slot["prices"]]) for name in ("bid", "floor", "ask"))
        yield "  ".join(f"{name} ${last:.4f} {sparkline(row)}" for name, last, row in trends if last is not None)
    else:
        yield f"{slot['slot']}: empty"
    decision = slot["decision"]
    if slot["why"]:
        yield slot["why"]
    elif decision:
        yield f"{decision['kind']}, {decision['code']}: {decision['sentence']}"


def event(row: Mapping[str, Any]) -> str:
    """Return one event as a line."""
    where = "/".join(part for part in (row["market"], row["host"]) if part)
    amount = f"${row['dollars']:.4f}" if row["dollars"] is not None else ""
    parts = (row["at"][11:19], amount, row["kind"], row["slot"], where, row["cause"], row["why"])
    return plain(" ".join(part for part in parts if part))


def words(order: Order) -> str:
    """Return an order as a person names it."""
    if order.is_of_everything:
        return "kill all" if order.verb == Word.KILL else "lift the kill"
    return f"{order.verb} {order.target}"


def said(sentence: str, order: Order) -> str:
    """Return a sentence of the daemon about an order, with the slot's name as the screen shows it."""
    return sentence.replace(f"{TargetKind.SLOT}:{order.target}", order.target)


def question(order: Order, preview: Mapping[str, Any]) -> str:
    """Return the meaning of an order, and its leases with dollars an hour now and after it."""
    rows, sentence = preview["leases"], said(preview["sentence"], order)
    is_named = order.is_of_everything or order.target in sentence
    first = words(order) if order.is_of_everything else sentence if is_named else f"{words(order)}: {sentence}"
    refilled = [f"But {order_text.REFILLED}."] if order.verb == "release" else []
    lines = [first, order_meanings.meaning(order), *refilled, *order_text.leases(rows, preview["in_doubt"])]
    return "\n".join([*map(plain, lines), order_text.total(rows)])


def sparkline(values: Sequence[float | None], width: int = TREND) -> str:
    """Return the last values as bars from zero to the highest. An unknown value is a space."""
    shown = values[-width:]
    most = max((value for value in shown if value is not None), default=0.0)
    if most <= 0:
        return ""
    return "".join(" " if value is None else BARS[round(value / most * (len(BARS) - 1))] for value in shown)
