"""The question to a person on a terminal before leases end. It shows each lease in dollars an hour."""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.shared import daemon_socket, exits, last_good, ledger_access, order_text
from agent.cli.shared import ledger_questions as questions
from agent.domain.work.order import Order
from agent.telemetry.plain_text import plain

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.decide.strategy import Tuned
    from agent.ledger.reader import Reader

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask. Without a terminal gpubid never asks.")]
Preview = dict[str, Any]
PATIENCE_SECONDS = 15.0
"""The longest time that the question waits for the daemon's list of leases."""
DECLINED = "nothing was ordered"
UNLISTED = "its leases cannot be listed"


def ask(orders: Sequence[Order], file: Path, *, yes: bool) -> list[Order]:
    """Show the effect of these orders, and end unless a person agrees. Return the orders with the shown leases.

    If the daemon does not answer in time, the question comes without the leases, and the orders can still be given.
    Of several orders each is looked at also where nobody is asked: one that is refused ends nothing by the others.
    """
    is_asked = is_person() and not yes
    if not is_asked:
        _look_at(orders if len(orders) > 1 else (), file)
        return list(orders)
    shown = [_preview(order, file) for order in orders]
    leases = {row["lease"]: row for each in shown for row in each["leases"]}
    in_doubt = max(each["in_doubt"] for each in shown)
    is_listed = all(each["is_listed"] for each in shown)
    warned = [order_text.REFILLED] if orders[0].verb == "release" else []
    _confirm([*(each["sentence"] for each in shown), *warned], list(leases.values()), in_doubt, is_listed=is_listed)
    return list(_agreed(orders, shown))


def _look_at(orders: Sequence[Order], file: Path) -> None:
    """Look at each order, and end if one is refused."""
    for order in orders:
        if not _preview(order, file)["is_listed"]:
            # A daemon that does not answer one question answers no other: the orders wait for it once.
            return


def _agreed(orders: Sequence[Order], shown: Sequence[Preview]) -> Iterator[Order]:
    """Yield the orders with their leases, without the leases that an earlier order ends."""
    ended: set[str] = set()
    for order, preview in zip(orders, shown, strict=True):
        leases = tuple(lease for lease in order_text.named(preview) if lease not in ended)
        yield replace(order, leases=leases if preview["is_listed"] else None)
        ended |= {row["lease"] for row in preview["leases"] if row["action"] == "release"}


def ask_all(order: Order, read: "tuple[Config, Mapping[str, Tuned]] | last_good.Broken", *, yes: bool) -> None:
    """Show the effect of a kill of everything, and end unless a person agrees.

    If neither the ledger nor the daemon answers, the question comes without the leases, and the kill is still possible.
    """
    if yes or not is_person():
        return
    try:
        shown = _found(order, read)
    except (typer.Exit, TimeoutError):
        shown = None
    if shown is None:
        _confirm([f"kill everything: {UNLISTED}"], [], 0, is_listed=False)
    else:
        _confirm([shown["sentence"]], shown["leases"], shown["in_doubt"], is_listed=True)


def ask_twice(*sentences: str) -> None:
    """Ask a person at a terminal after each sentence, and end unless every answer is yes. No option answers."""
    if not is_person():
        exits.stop(exits.BAD_INPUT, ["--by-label is for a person at a terminal; without it, kill asks the daemon"])
    for sentence in sentences:
        _confirm([sentence], [], 0, is_listed=False)


def is_person() -> bool:
    """Return whether a person gives the order: input and output are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _preview(order: Order, file: Path) -> Preview:
    """Return the effect of an order, or end if it matches nothing. `is_listed` says whether its leases are known."""
    read = last_good.read(file)
    words = f"{order.verb} {order.target}"
    try:
        preview = _found(order, read)
    except TimeoutError:
        return {"sentence": f"{words}: {UNLISTED}", "leases": [], "in_doubt": 0, "is_listed": False}
    if preview is None and isinstance(read, last_good.Broken):
        read.end()
    return {"is_listed": True, **(preview or {"sentence": words, "leases": [], "in_doubt": 0})}


def _found(order: Order, read: "tuple[Config, Mapping[str, Tuned]] | last_good.Broken") -> Preview | None:
    """Return the effect of an order as the daemon shows it, else as the ledger does; None if there is neither.

    Raises:
        TimeoutError: the daemon does not answer in time.
    """
    place = read.place if isinstance(read, last_good.Broken) else read[0]
    # A first import takes seconds on a busy host; it must not count as the daemon's time.
    daemon_socket.load()
    asked = daemon_socket.get(place, "/preview", daemon_socket.query(order))
    preview: Preview | None = asyncio.run(asyncio.wait_for(asked, PATIENCE_SECONDS))
    if preview is not None or isinstance(read, last_good.Broken) or _has_nothing(read[0]):
        return preview
    config = read[0]
    return questions.ledger(config, lambda reader: _read(config, reader, order))


def _has_nothing(config: "Config") -> bool:
    return ledger_access.is_missing(config) and not daemon_socket.may_ask(config)


async def _read(config: "Config", reader: "Reader", order: Order) -> Preview:
    """Return the effect of the order as the ledger shows it, or end with the reason why it matches nothing."""
    from agent.act.orders import order_preview
    from agent.act.orders.order_error import OrderError
    from agent.act.orders.order_grounds import Grounds

    now = await questions.present(reader)
    markets = tuple(market.name for market in config.markets)
    grounds = Grounds(config.workloads, markets, await reader.recollection(now), now)
    try:
        return order_preview.shown(order, grounds)
    except OrderError as error:
        exits.stop(exits.BAD_INPUT, [error.sentence])


def _confirm(sentences: Sequence[str], leases: Sequence[Mapping[str, Any]], in_doubt: int, *, is_listed: bool) -> None:
    """Print the effect to standard error, ask, and end if the person does not agree."""
    for sentence in sentences:
        _say(sentence)
    for line in order_text.leases(leases, in_doubt):
        _say(line)
    if is_listed:
        _say(order_text.total(leases))
    if not typer.confirm("Go on?", err=True):
        exits.stop(exits.FAILED, [DECLINED])


def _say(line: str) -> None:
    sys.stderr.write(plain(line) + "\n")
