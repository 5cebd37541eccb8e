"""The expected effect and the result of an order, in lines, for the terminal's prompt and for `gpubid top`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.domain.record.hold import Target, Word
from agent.domain.work.order import Order
from agent.telemetry.plain_text import plain

Row = Mapping[str, Any]
REFILLED = "the daemon fills a released slot again once it may and is wanted; `gpubid drain NAME` forbids that"


def leases(rows: Sequence[Row], in_doubt: int) -> Iterator[str]:
    """Yield a line for each lease with dollars an hour, and one for the orders in doubt."""
    for row in rows:
        where = f"{row['gpus']}x {row['gpu']} on {row['market']}/{row['host']}"
        rate = f"${row['dollars_per_hour']:.4f}/h"
        yield plain(f"  {row['slot']} {row['lease']} {row['state']}, {where}: {rate}, {row['action']}")
    if in_doubt:
        yield f"  {in_doubt} order(s) in doubt may bill as well"


def total(rows: Sequence[Row]) -> str:
    """Return the number of leases, and their dollars an hour now and after the order."""
    before = sum(row["dollars_per_hour"] for row in rows)
    after = sum(row["after_dollars_per_hour"] for row in rows)
    return f"{len(rows)} lease(s), ${before:.4f} an hour now, ${after:.4f} an hour after it"


def named(preview: Row) -> tuple[str, ...]:
    """Return the leases that a person agrees to end, without those whose release is under way."""
    from agent.act.orders import order_preview

    return order_preview.named(preview)


def afterwards(orders: Sequence[Order], said: Sequence[str]) -> list[str]:
    """Return what these orders of one verb leave, and the command that ends it. Other verbs explain themselves.

    `said` are their results.
    """
    verb, target = orders[0].verb, orders[0].target
    return {
        "pause": [f"paused disks still bill; `gpubid resume {target}` ends the pause"],
        "drain": [f"`gpubid resume {target}` ends the drain"],
        "lock": [f"`gpubid unlock {target}` ends the lock"],
        "release": [REFILLED],
        "kill": list(_killed(said)),
    }.get(verb, [])


def _killed(said: Sequence[str]) -> Iterator[str]:
    """Yield how long each killed target stays killed. A kill of a lease is one of its slot, except one of several."""
    for sentence in said:
        verb, _, name = sentence.partition(" ")
        target = Target.parse(name)
        if verb == Word.KILL and target is not None:
            yield plain(f"nothing is rented there until `gpubid kill --lift {target.spoken}`")


def doubt(row: Row) -> str:
    """Return a sentence for an order whose outcome is not known."""
    return plain(f"{row['slot']}: {row['kind']} {row['intent']} is in doubt and may bill: `gpubid fleet` shows it")


def doubts(orders: Sequence[Order], said: Row) -> list[str]:
    """Return a sentence for each order in doubt that may still bill although these orders end their targets."""
    from agent.act.orders import operator_orders

    if orders[0].verb not in operator_orders.ENDING:
        return []
    ended = {row["slot"] for row in said["done"]} | {order.target for order in orders}
    is_all = any(order.is_of_everything for order in orders)
    return [doubt(row) for row in said["in_doubt"] if is_all or not ended.isdisjoint(_names(row))]


def _names(row: Row) -> tuple[str, ...]:
    """Return the targets with which an order may name this row."""
    market, host, slot = row["market"], row["host"], row["slot"]
    hosts = (f"host:{host}", f"host:{market}/{host}") if host else ()
    return slot, slot.rpartition("/")[0], row["lease"], f"market:{market}", *hosts
