"""`gpubid kill`: a person stops all spending, or that on one target; the daemon does it if it runs, else this does."""

import asyncio
import getpass
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import exits, lastgood, orders, session, wire

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.decide.strategy import Tuned

LOOKS = 2
"""Looks at the market after a kill without a daemon: an instance that the ledger lacks is believed on the second."""
Answer = dict[str, list[dict[str, Any]]]


def kill(
    target: Annotated[
        str | None,
        typer.Argument(
            help="NAME, NAME/SLOT, a lease or instance id, host:MARKET/ID, owner:MARKET/ID or market:NAME; else all."
        ),
    ] = None,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    keep_disks: Annotated[
        bool, typer.Option("--keep-disks", help="Pause instead of release; disks go on billing.")
    ] = False,
    lift: Annotated[bool, typer.Option("--lift", help="End an earlier kill: let the daemon rent again.")] = False,
    as_json: session.JsonOption = False,
) -> None:
    """Stop spending now: release every lease, or those of the target, and rent nothing there until `kill --lift`."""
    if lift and keep_disks:
        exits.stop(exits.BAD_INPUT, ["--lift ends a kill, --keep-disks gives one; give one of them"])
    if target is not None:
        verb = "resume" if lift else "pause" if keep_disks else "kill"
        orders.give(verb, target, config, as_json=as_json)
        return
    verb = "lift" if lift else "kill"
    read = lastgood.read(config)
    if isinstance(read, lastgood.Broken):
        body = {"verb": verb, "leases": [], "keep_disks": keep_disks}
        said: Answer = read.told(asyncio.run(wire.post(read.place, "/order", body)))
    else:
        said = _ordered(*read, verb, keep_disks=keep_disks)
    end = "what is configured is rented again" if lift else "nothing is rented until `gpubid kill --lift`"
    _print(said, end, as_json=as_json)


def _ordered(config: "Config", tuned: "Mapping[str, Tuned]", verb: str, *, keep_disks: bool) -> Answer:
    from agent.ledger.errors import LedgerError
    from agent.systemd import CredentialError

    session.log_quietly()
    try:
        with session.waiting("giving the order"):
            return asyncio.run(_order(config, tuned, verb, keep_disks=keep_disks))
    except LedgerError as error:
        exits.refused(error)
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])


async def _order(config: "Config", tuned: "Mapping[str, Tuned]", verb: str, *, keep_disks: bool) -> Answer:
    """Hand the order to the daemon; where none runs, take the ledger and carry it out here."""
    from agent.app import App
    from agent.web import operator

    told = await wire.post(config, "/order", {"verb": verb, "leases": [], "keep_disks": keep_disks})
    if told is not None:
        return told
    session.must_own(config.ledger)
    async with session.outside(config) as outside:
        app = await App.open(config, tuned, outside)
        try:
            done = await app.obey(verb, set(), f"user {getpass.getuser()}", keep_disks=keep_disks)
            for _ in range(LOOKS if verb == "kill" else 0):
                # What the ledger does not know is stopped as well; under a kill a cycle pays for nothing.
                done += (await app.cycle()).done
            return operator.answer(done, app.doubts())
        finally:
            await app.close()


def _print(said: Answer, end: str, *, as_json: bool) -> None:
    if as_json:
        session.print_json(said)
    else:
        _tell(said, end)
    if said["in_doubt"] or _unconfirmed(said["done"]):
        raise typer.Exit(exits.FAILED)


def _tell(said: Answer, end: str) -> None:
    for row in said["done"]:
        session.say(f"{row['slot']} {row['lease']}: {row['kind']} {row['state']} {row['outcome']}".rstrip())
    for row in said["in_doubt"]:
        session.say(f"{row['slot']}: {row['kind']} {row['intent']} is in doubt and may bill: look with `gpubid fleet`")
    session.say(f"{len(said['done'])} order(s) carried out; {end}" if said["done"] else end)


def _unconfirmed(done: list[dict[str, Any]]) -> bool:
    """Tell whether the last order for a lease was not confirmed: an earlier one may have been refused."""
    last = {row["lease"]: row["state"] for row in done}
    return any(state != "confirmed" for state in last.values())
