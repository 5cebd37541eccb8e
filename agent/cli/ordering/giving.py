"""Giving orders: to the daemon where one runs, else carried out here, with the ledger taken.

Each is written into the ledger with who gave it. What needs the market is tried at once; when the market cannot be
reached, the next cycle of the daemon does it. Without a daemon nobody does, and the message says so.
"""

import asyncio
import getpass
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agent.cli.shared import daemon_socket, exits, last_good, order_text, session
from agent.domain.work.order import Order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.config.market_place import Place
    from agent.config.settings import Config
    from agent.decide.strategy import Tuned

BY_DAEMON = "the daemon's next cycle tries again"


def give(orders: Sequence[Order], file: Path, *, as_json: bool) -> None:
    """Give orders, one after the other, and print what they came to."""
    from agent.act.orders.operator_orders import OrderError
    from agent.ledger.ledger_errors import LedgerError
    from agent.systemd import CredentialError

    read = last_good.read(file)
    session.log_quietly()
    try:
        with session.waiting("giving the order"):
            said = asyncio.run(_given(orders, read))
    except OrderError as error:
        exits.stop(exits.BAD_INPUT, [error.sentence])
    except LedgerError as error:
        exits.refused(error)
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
    _print(said, _again(orders) if said.pop("is_here") else BY_DAEMON, order_text.doubts(orders, said), as_json=as_json)


def who() -> str:
    """Return who gives an order here, as the ledger writes it down."""
    return f"user {getpass.getuser()}"


async def _given(
    orders: Sequence[Order], read: "tuple[Config, Mapping[str, Tuned]] | last_good.Broken"
) -> dict[str, Any]:
    place = read.place if isinstance(read, last_good.Broken) else read[0]
    answers: list[dict[str, Any]] = []
    for order in orders:
        answer = await told(order, place)
        if answer is None:
            break
        answers.append(answer)
    left = orders[len(answers) :]
    if isinstance(read, last_good.Broken):
        read.told(answers or None)
        if left:
            words = ", ".join(f"{order.verb} {order.target}" for order in left)
            exits.stop(
                exits.FAILED,
                [f"the daemon ended before it took the order: {words}; correct the file and give the order again"],
            )
    elif left:
        answers += await _here(left, *read)
    merged: dict[str, Any] = {"said": [], "done": [], "in_doubt": answers[-1]["in_doubt"], "is_here": bool(left)}
    for answer in answers:
        merged["said"].append(answer["said"])
        merged["done"] += answer["done"]
    return merged


async def told(order: Order, place: "Config | Place") -> dict[str, Any] | None:
    """Return what the daemon answers to an order, or None where none runs."""
    seconds = order.span.total_seconds() if order.span is not None else None
    body = {
        "verb": order.verb,
        "target": order.target,
        "seconds": seconds,
        "into": order.into,
        "hours": order.hours,
        "keep_disks": order.keep_disks,
    }
    return await daemon_socket.post(place, "/say", body)


async def _here(orders: Sequence[Order], config: "Config", tuned: "Mapping[str, Tuned]") -> list[dict[str, Any]]:
    """Take the ledger and carry the orders out. They rent nothing, so they need no credentials of a workload."""
    from agent.app import App
    from agent.web import operator_socket

    answers = []
    session.must_own(config.ledger)
    async with session.outside_of_markets(config) as outside:
        app = await App.open(config, tuned, outside)
        try:
            for order in orders:
                said, carried = await app.say(order, who())
                answers.append({"said": said, **operator_socket.answer(carried, app.doubts())})
        finally:
            await app.close()
    return answers


def _again(orders: Sequence[Order]) -> str:
    words = ", ".join(f"`gpubid {order.verb} {order.target}`" for order in orders)
    return f"no daemon runs, so nobody tries again: give {words} again, or start `gpubid run`"


def _print(said: dict[str, Any], again: str, doubts: Sequence[str], *, as_json: bool) -> None:
    late = [row for row in said["done"] if row["state"] != "confirmed"]
    if as_json:
        session.print_json(said)
    else:
        for sentence in said["said"]:
            session.say(sentence)
        for row in said["done"]:
            session.say(f"{row['slot']} {row['lease']}: {row['kind']} {row['state']} {row['outcome']}".rstrip())
        for doubt in doubts:
            session.say(doubt)
        if late:
            session.say(f"recorded, but not all is confirmed; {again}")
    if late or doubts:
        raise typer.Exit(exits.FAILED)
