"""Orders of a person: drain, pause, resume, release, adopt, lock, unlock, done, progress.

Each is written into the ledger with who said it: by the daemon where one runs, else here, with the ledger taken. What
needs the market is tried at once; when the market cannot be reached, the next cycle of the daemon does it.
"""

import asyncio
import getpass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.shared import daemon_socket, exits, last_good, session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.act.orders.operator_orders import Order
    from agent.config.market_place import Place
    from agent.config.settings import Config
    from agent.decide.strategy import Tuned

Target = Annotated[
    str, typer.Argument(help="NAME, NAME/SLOT, a lease or instance id, host:MARKET/ID, owner:MARKET/ID or market:NAME.")
]


def drain(
    target: Target, config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False
) -> None:
    """Rent nothing more for the target; its leases go on until they end. `resume` ends the drain."""
    _give([("drain", target, None, "")], config, as_json=as_json)


def pause(
    target: Target, config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False
) -> None:
    """Stop the target's instances and keep their disks until `resume`; disks go on billing."""
    _give([("pause", target, None, "")], config, as_json=as_json)


def resume(
    target: Annotated[
        str | None, typer.Argument(help="As for `pause`; without a target, an earlier kill is lifted.")
    ] = None,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """End a pause, a drain, a hold or a `done`; without a target, end an earlier `kill`."""
    if target is None:
        from agent.cli.ordering import kill

        kill.kill(None, config, keep_disks=False, lift=True, as_json=as_json)
        return
    _give([("resume", target, None, "")], config, as_json=as_json)


def release(
    targets: Annotated[
        list[str],
        typer.Argument(help="Lease or instance ids, NAME, NAME/SLOT, host:MARKET/ID, owner:MARKET/ID or market:NAME."),
    ],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """End leases for good, with their disks; the daemon fills a slot again if the configuration still asks for it."""
    _give([("release", target, None, "") for target in targets], config, as_json=as_json)


def adopt(
    target: Annotated[str, typer.Argument(help="A held lease: its id or its instance's id.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    into: Annotated[str, typer.Option(help="NAME/SLOT to adopt it into; by default the slot in its label.")] = "",
    as_json: session.JsonOption = False,
) -> None:
    """Put a held orphan into its empty slot."""
    _give([("adopt", target, None, into)], config, as_json=as_json)


def lock(
    target: Target,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    span: Annotated[
        str, typer.Option("--for", metavar="SPAN", help="How long, such as 90m or 2h; without it, until `unlock`.")
    ] = "",
    as_json: session.JsonOption = False,
) -> None:
    """Use the target for nothing new: no rent, no start, no higher bid; leases that run go on."""
    _give([("lock", target, _span(span), "")], config, as_json=as_json)


def unlock(
    target: Annotated[str, typer.Argument(help="A locked target, or anything that `gpubid fleet` shows as resting.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """End a lock, or a cooldown that gpubid began."""
    _give([("unlock", target, None, "")], config, as_json=as_json)


def done(
    target: Annotated[str, typer.Argument(help="A batch workload, a NAME/SLOT of it, or one of its leases.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """Mark a batch as finished: release it and never fill it again."""
    _give([("done", target, None, "")], config, as_json=as_json)


def progress(
    workload: Annotated[str, typer.Argument(help="A workload with a deadline.")],
    hours: Annotated[float, typer.Argument(help="Hours of work that are done, on the reference GPU.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """Report the progress of a workload with a deadline; a later report of the workload itself replaces this one."""
    _give([("progress", workload, None, "")], config, as_json=as_json, hours=hours)


def give(verb: str, target: str, config: Path, *, as_json: bool) -> None:
    """Give one order about one target and print the result."""
    _give([(verb, target, None, "")], config, as_json=as_json)


def _span(text: str) -> timedelta | None:
    if not text:
        return None
    import pydantic

    from agent.config import kinds

    try:
        span = pydantic.TypeAdapter(kinds.Span).validate_python(text)
    except pydantic.ValidationError:
        span = timedelta(0)
    if not timedelta(0) < span <= timedelta(days=3650):
        exits.stop(exits.BAD_INPUT, [f"--for: {text!r} is not a duration; write for example 90m, 2h or 7d"])
    return span


def _give(
    asked: list[tuple[str, str, timedelta | None, str]],
    file: Path,
    *,
    as_json: bool,
    hours: float | None = None,
) -> None:
    from agent.act.orders.operator_orders import Order, OrderError
    from agent.ledger.ledger_errors import LedgerError
    from agent.systemd import CredentialError

    read = last_good.read(file)
    session.log_quietly()
    try:
        with session.waiting("giving the order"):
            said = asyncio.run(_given([Order(*each, hours) for each in asked], read))
    except OrderError as error:
        exits.stop(exits.BAD_INPUT, [error.sentence])
    except LedgerError as error:
        exits.refused(error)
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
    _print(said, as_json=as_json)


async def _given(
    orders: "list[Order]", read: "tuple[Config, Mapping[str, Tuned]] | last_good.Broken"
) -> dict[str, Any]:
    place = read.place if isinstance(read, last_good.Broken) else read[0]
    told: list[dict[str, Any]] = []
    for order in orders:
        answer = await _told(order, place)
        if answer is None:
            break
        told.append(answer)
    left = orders[len(told) :]
    if isinstance(read, last_good.Broken):
        read.told(told or None)
        if left:
            words = ", ".join(f"{order.verb} {order.target}" for order in left)
            exits.stop(
                exits.FAILED,
                [f"the daemon ended before it took the order: {words}; correct the file and give the order again"],
            )
    elif left:
        told += await _here(left, *read)
    merged: dict[str, Any] = {"said": [], "done": [], "in_doubt": told[-1]["in_doubt"]}
    for answer in told:
        merged["said"].append(answer["said"])
        merged["done"] += answer["done"]
    return merged


async def _told(order: "Order", config: "Config | Place") -> dict[str, Any] | None:
    seconds = order.span.total_seconds() if order.span is not None else None
    body = {"verb": order.verb, "target": order.target, "seconds": seconds, "into": order.into, "hours": order.hours}
    return await daemon_socket.post(config, "/say", body)


async def _here(orders: "list[Order]", config: "Config", tuned: "Mapping[str, Tuned]") -> list[dict[str, Any]]:
    """Lock the ledger and carry out the orders; the next cycle repeats those for an unreachable market."""
    from agent.app import App
    from agent.web import operator_socket

    told = []
    session.must_own(config.ledger)
    async with session.outside(config) as outside:
        app = await App.open(config, tuned, outside)
        try:
            for order in orders:
                said, carried = await app.say(order, f"user {getpass.getuser()}")
                told.append({"said": said, **operator_socket.answer(carried, app.doubts())})
        finally:
            await app.close()
    return told


def _print(said: dict[str, Any], *, as_json: bool) -> None:
    late = [row for row in said["done"] if row["state"] != "confirmed"]
    if as_json:
        session.print_json(said)
    else:
        for sentence in said["said"]:
            session.say(sentence)
        for row in said["done"]:
            session.say(f"{row['slot']} {row['lease']}: {row['kind']} {row['state']} {row['outcome']}".rstrip())
        if late:
            session.say("recorded; the daemon's next cycle tries again what is not confirmed")
    if late:
        raise typer.Exit(exits.FAILED)
