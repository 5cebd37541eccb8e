"""Questions to the ledger, answered from its file or by the daemon.

The daemon is asked if this user may not read the file, or if agent.toml is broken: it runs with its last good file.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agent.cli.shared import daemon_socket, exits, last_good, ledger_access, session

if TYPE_CHECKING:
    from datetime import datetime

    from agent.config.daemon_paths import DaemonPaths
    from agent.config.settings import Config
    from agent.ledger.reader import Reader

T = TypeVar("T")


def ask(
    file: Path,
    route: str,
    question: "Callable[[Config, Reader], Awaitable[Any]]",
    query: daemon_socket.Query | None = None,
    *,
    workload: str | None = None,
    first: bool = False,
) -> Any:  # noqa: ANN401 - JSON
    """Return the daemon's answer on `route`, or the result of `question` on the ledger's file; or end with a message.

    `workload` must be a NAME or NAME/SLOT of the configuration, or None. With `first`, ask the daemon before the file.
    """
    read = last_good.read(file)
    if isinstance(read, last_good.Broken):
        return read.asked(route, query)
    config, _ = read
    if workload is not None:
        name_of(config, workload)
    answer = daemon(config, route, query, first=first)
    return answer if answer is not None else ledger(config, lambda reader: question(config, reader))


def name_of(config: "Config", text: str) -> str:
    """Return the workload of a NAME or a NAME/SLOT, or end with the known slots or workloads."""
    from agent.config import problems

    places = {str(place): work.name for work in config.workloads for place in work.places}
    slots = {work.name: len(work.places) for work in config.workloads}
    name = text.rpartition("/")[0]
    if text not in places and text not in slots and name in slots:
        exits.stop(exits.BAD_INPUT, [problems.no_slot(name, slots[name], text)])
    if text not in places:
        refuse_unknown(text, list(slots))
    return places.get(text, text)


def refuse_unknown(workload: str, names: Sequence[str]) -> None:
    """End with the known workloads and a suggestion, unless a workload has that name."""
    if workload not in names:
        from agent.config import problems

        exits.stop(exits.BAD_INPUT, [problems.no_workload(workload, names)])


def daemon(config: "Config", route: str, query: daemon_socket.Query | None = None, *, first: bool = False) -> Any:  # noqa: ANN401 - JSON
    """Return the daemon's answer if `first`, or if the ledger may not be read; None means: read the file."""
    if (first and daemon_socket.may_ask(config)) or not ledger_access.may_read(config):
        return asyncio.run(daemon_socket.get(config, route, query))
    return None


async def present(reader: "Reader") -> "datetime":
    """Return up to when open leases are metered: now, or the end of the rehearsal that wrote the ledger."""
    from agent.clock import SystemClock

    return await reader.rehearsed_until() or SystemClock().now()


def ledger(config: "Config | DaemonPaths", question: "Callable[[Reader], Awaitable[T]]") -> T:
    """Return the result of a question on the ledger's file, or end with the ledger's message."""
    from agent.ledger.ledger_errors import LedgerError
    from agent.ledger.reader import open_reader
    from agent.systemd import CredentialError

    async def asked() -> T:
        reader = await open_reader(ledger_access.place_of(config))
        try:
            return await question(reader)
        finally:
            await reader.close()

    try:
        with session.waiting("reading the ledger"):
            return asyncio.run(asked())
    except LedgerError as error:
        exits.refused(error)
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
