"""`gpubid release` and `gpubid kill`: a person's word, carried out by the daemon if it runs, else here."""

import asyncio
import getpass
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import exits, session

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.decide.strategy import Tuned
    from agent.domain.lease import Lease

ANSWER_SECONDS = 120.0


def release(
    targets: Annotated[list[str], typer.Argument(help="Lease or instance ids, WORKLOAD or WORKLOAD/SLOT.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """End leases for good, disk and all; a slot that the configuration still asks for is filled again."""
    settings, tuned = session.read(config)
    leases = _open_leases(settings)
    chosen = {lease.lease_id for target in targets for lease in _named(target, leases)}
    _print(_ordered(settings, tuned, "release", chosen, keep_disks=False), as_json=as_json)


def kill(
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    keep_disks: Annotated[
        bool, typer.Option("--keep-disks", help="Pause instead of release; disks go on billing.")
    ] = False,
    lift: Annotated[bool, typer.Option("--lift", help="End an earlier kill: let the daemon rent again.")] = False,
    as_json: session.JsonOption = False,
) -> None:
    """Stop all spending now: release every lease, and let nothing be rented until `kill --lift`."""
    settings, tuned = session.read(config)
    _print(_ordered(settings, tuned, "lift" if lift else "kill", set(), keep_disks=keep_disks), as_json=as_json)


def _named(target: str, leases: "list[Lease]") -> "list[Lease]":
    found = [
        lease for lease in leases if target in {lease.lease_id, lease.instance_id, lease.slot.workload, str(lease.slot)}
    ]
    if not found:
        known = ", ".join(sorted(lease.lease_id for lease in leases)) or "none"
        exits.stop(exits.BAD_INPUT, [f"no open lease is meant by {target!r}; open are: {known}"])
    return found


def _open_leases(config: "Config") -> "list[Lease]":
    from agent.clock import SystemClock
    from agent.ledger.errors import LedgerError
    from agent.ledger.reader import open_reader

    async def read() -> "list[Lease]":
        reader = await open_reader(config.ledger)
        try:
            return list((await reader.recollection(SystemClock().now())).leases)
        finally:
            await reader.close()

    try:
        return asyncio.run(read())
    except LedgerError as error:
        exits.stop(exits.FAILED, [error.sentence])


def _ordered(
    config: "Config", tuned: "Mapping[str, Tuned]", verb: str, lease_ids: set[str], *, keep_disks: bool
) -> list[dict[str, Any]]:
    from agent.ledger.errors import LedgerError
    from agent.systemd import CredentialError

    session.log_quietly()
    try:
        return asyncio.run(_order(config, tuned, verb, lease_ids, keep_disks=keep_disks))
    except LedgerError as error:
        exits.stop(exits.FAILED, [error.sentence])
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])


async def _order(
    config: "Config", tuned: "Mapping[str, Tuned]", verb: str, lease_ids: set[str], *, keep_disks: bool
) -> list[dict[str, Any]]:
    """Hand the order to the daemon; where none runs, take the ledger and carry it out here."""
    from agent.app import App
    from agent.web import operator

    told = await _told_daemon(config, {"verb": verb, "leases": sorted(lease_ids), "keep_disks": keep_disks})
    if told is not None:
        return told
    async with session.outside(config) as outside:
        app = await App.open(config, tuned, outside)
        try:
            done = await app.obey(verb, lease_ids, f"user {getpass.getuser()}", keep_disks=keep_disks)
        finally:
            await app.close()
    return [operator.told(intent) for intent in done]


async def _told_daemon(config: "Config", order: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the daemon's answer, or None when none listens."""
    import aiohttp

    from agent.web import operator

    path = operator.path_of(config.ledger)
    if not path.exists():
        return None
    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path)), timeout=timeout) as link,
            link.post("http://gpubid/order", json=order) as answer,
        ):
            said = await answer.json()
    except PermissionError:
        exits.stop(exits.FAILED, [f"{path}: not yours to open; run this as the daemon's user"])
    except aiohttp.ClientConnectorError:
        return None
    except (aiohttp.ClientError, TimeoutError):
        exits.stop(
            exits.FAILED, ["the daemon did not answer; stop it and give the order again: it is then carried out here"]
        )
    if "done" not in said:
        exits.stop(exits.FAILED, [str(said.get("sentence") or said.get("error"))])
    done: list[dict[str, Any]] = said["done"]
    return done


def _print(done: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        session.print_json({"done": done})
    else:
        for row in done:
            session.say(f"{row['slot']} {row['lease']}: {row['kind']} {row['state']} {row['outcome']}")
        session.say(f"{len(done)} order(s) carried out")
    if any(row["state"] != "confirmed" for row in done):
        raise typer.Exit(exits.FAILED)
