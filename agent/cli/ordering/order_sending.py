"""Giving orders: to the daemon if one runs. Else this process takes the ledger and carries them out.

The ledger records each order with its giver. Requests to the market are sent at once. If a market cannot be reached,
the daemon's next cycle tries again. Without a daemon nobody tries again, and the message says so.
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agent.cli.ordering import confirmation, kill_progress, own_program
from agent.cli.shared import daemon_socket, exits, last_good, ledger_access, order_text, session
from agent.domain.work.order import Order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.config.daemon_paths import DaemonPaths
    from agent.config.settings import Config
    from agent.decide.strategy import Tuned

TO_DAEMON = "the daemon keeps trying to end them; `gpubid fleet` shows them"
BY_DAEMON = "the daemon's next cycle tries again"


@dataclass(slots=True)
class Given:
    """The answers to the accepted orders. `is_here` says whether this process carried them out, without a daemon."""

    answers: list[dict[str, Any]] = field(default_factory=list)
    is_here: bool = False
    unsent: list[str] = field(default_factory=list)
    """The leases to be ended to which this process could send nothing, with their markets."""


def give(orders: Sequence[Order], file: Path, *, as_json: bool, yes: bool = True, waits: bool = False) -> None:
    """Give orders, one after the other, and print their results. Without `yes`, ask a person first.

    With `waits`, a daemon's orders are waited for until the leases that they end bill nothing.
    If an order would by then concern other leases than were shown, the person is asked again.
    """
    session.log_quietly()
    given, orders = Given(), list(dict.fromkeys(orders))
    try:
        while left := orders[len(given.answers) :]:
            agreed = confirmation.ask(left, file, yes=yes)
            _try(agreed, file, given)
    except typer.Exit:
        # A later order was refused, but the earlier ones were carried out.
        if given.answers:
            _print(orders[: len(given.answers)], given, as_json=as_json)
        raise
    place = last_good.place(file) if waits and not given.is_here else None
    if _print(orders, given, as_json=as_json, waits_at=place):
        raise typer.Exit(exits.FAILED)


def _try(orders: Sequence[Order], file: Path, given: Given) -> None:
    """Give orders until one concerns other leases than were shown. End if one is refused for another reason."""
    from agent.act.orders import order_preview
    from agent.act.orders.order_error import OrderError
    from agent.ledger.ledger_errors import LedgerError
    from agent.systemd import CredentialError

    try:
        read = last_good.read(file)
        with session.waiting("giving the order"):
            asyncio.run(_given(orders, read, given))
    except (OrderError, daemon_socket.Refused) as error:
        if error.code != order_preview.CHANGED:
            exits.stop(getattr(error, "exit_code", exits.BAD_INPUT), [str(error)])
        session.warn(str(error))
    except LedgerError as error:
        exits.refused(error)
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])


def _merged(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    done = [row for answer in answers for row in answer["done"]]
    return {"said": [answer["said"] for answer in answers], "done": done, "in_doubt": answers[-1]["in_doubt"]}


def who() -> str:
    """Return the giver of an order, as the ledger records it."""
    return f"uid {os.getuid()}"


async def _given(
    orders: Sequence[Order], read: "tuple[Config, Mapping[str, Tuned]] | last_good.Broken", given: Given
) -> None:
    place = read.place if isinstance(read, last_good.Broken) else read[0]
    left = list(orders)
    while left and (answer := await daemon_socket.order(place, left[0])) is not None:
        given.answers.append(answer)
        left.pop(0)
    if isinstance(read, last_good.Broken):
        read.answer_or_end(given.answers or None)
        if left:
            words = ", ".join(f"{order.verb} {order.target}" for order in left)
            exits.stop(
                exits.FAILED,
                [f"the daemon ended before it took the order: {words}; correct the file and give the order again"],
            )
    elif left:
        await _here(left, *read, given)


async def answer_of_daemon(order: Order, place: "Config | DaemonPaths") -> dict[str, Any] | None:
    """Return the daemon's answer to an order, or None if none runs. End with its message if it refuses."""
    try:
        return await daemon_socket.order(place, order)
    except daemon_socket.Refused as error:
        exits.stop(error.exit_code, [str(error)])


async def _here(orders: Sequence[Order], config: "Config", tuned: "Mapping[str, Tuned]", given: Given) -> None:
    """Take the ledger and carry out the orders. They rent nothing, so they need no credentials of workloads."""
    from agent.web import operator_socket

    given.is_here = True
    ledger_access.must_own(config)
    async with own_program.opened(config, tuned) as mine:
        for order in orders:
            said, carried = await mine.app.say(order, who())
            given.answers.append({"said": said, **operator_socket.answer(carried, mine.app.doubts())})
            given.unsent += mine.unsent(order)


def _again(orders: Sequence[Order]) -> str:
    words = ", ".join(f"`gpubid {order.verb} {order.target}`" for order in orders)
    return f"no daemon runs, so nobody tries again: give {words} again, or start `gpubid run`"


def _print(
    orders: Sequence[Order], given: Given, *, as_json: bool, waits_at: "Config | DaemonPaths | None" = None
) -> bool:
    """Print the results of orders. Return whether an order is not done yet or in doubt.

    With `waits_at`, wait for the daemon there until the ended leases bill nothing.
    """
    said = _merged(given.answers)
    again, doubts = _again(orders) if given.is_here else BY_DAEMON, order_text.doubts(orders, said)
    late = [row for row in said["done"] if row["state"] != "confirmed"]
    if not as_json:
        for sentence in said["said"]:
            session.say(sentence)
        for row in said["done"]:
            session.say(f"{row['slot']} {row['lease']}: {row['kind']} {row['state']} {row['outcome']}".rstrip())
    left: list[Any] = []
    if waits_at is not None:
        late, left = [], _wait(waits_at, orders, said["done"], to_error=as_json)
    if as_json:
        session.print_json(said)
    else:
        unsent = (
            f"{lease}: nothing was sent; a daemon with that market's key carries it out" for lease in given.unsent
        )
        for line in (*doubts, *order_text.afterwards(orders, said["said"]), *unsent):
            session.say(line)
        if late:
            session.say(f"recorded, but not all is confirmed; {again}")
    return bool(late or left or doubts or given.unsent)


def _wait(
    place: "Config | DaemonPaths", orders: Sequence[Order], done: Sequence[dict[str, Any]], *, to_error: bool
) -> list[Any]:
    """Wait until the leases of these orders bill nothing. Return the rows of those that no call ends.

    Ctrl-C ends the wait alone, with exit code 1.
    """
    # A lease whose release is under way is not ordered again, and may still bill.
    concerned = [asyncio.run(daemon_socket.leases_of(place, order)) for order in orders]
    only = frozenset(row["lease"] for row in done).union(*concerned)
    progress = kill_progress.Progress(keep_disks=False, to_error=to_error, only=only)
    progress.is_given = True
    shown = kill_progress.interruptible(kill_progress.of_daemon(place, progress, wait=True), TO_DAEMON, progress)
    left = progress.left(shown)
    if only and not left and not to_error:
        session.say("these leases bill nothing any more")
    return left
