"""A question to the ledger: the file answers, or the daemon.

The daemon is asked where the file is not ours to read, and where agent.toml is broken: it runs on its last good one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agent.cli.shared import daemon_socket, exits, last_good, session

if TYPE_CHECKING:
    from agent.config.market_place import Place
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
    """Return what the daemon's `route` shows, or what `question` finds in the ledger's file; or end with a sentence.

    `workload` must be one of the configuration, or a NAME/SLOT of it, where one is named. With `first` the daemon is
    asked before the file.
    """
    read = last_good.read(file)
    if isinstance(read, last_good.Broken):
        return read.asked(route, query)
    config, _ = read
    if workload is not None:
        name_of(config, workload)
    told = daemon(config, route, query, first=first)
    return told if told is not None else ledger(config, lambda reader: question(config, reader))


def name_of(config: "Config", text: str) -> str:
    """Return the workload of a NAME or a NAME/SLOT, or end with those that there are."""
    places = {str(place): work.name for work in config.workloads for place in work.places}
    names = [work.name for work in config.workloads]
    if text not in places:
        refuse_unknown(text, names)
    return places.get(text, text)


def refuse_unknown(workload: str, names: Sequence[str]) -> None:
    """End with the workloads that there are, and the one that was meant, unless there is one of that name."""
    if workload not in names:
        from agent.config import problems

        exits.stop(exits.BAD_INPUT, [problems.no_workload(workload, names)])


def daemon(config: "Config", route: str, query: daemon_socket.Query | None = None, *, first: bool = False) -> Any:  # noqa: ANN401 - JSON
    """Return the daemon's answer if `first`, or if the ledger may not be read; None means: read the file."""
    if (first and daemon_socket.may_ask(config)) or not session.may_read(config.ledger):
        return asyncio.run(daemon_socket.get(config, route, query))
    return None


def ledger(config: "Config | Place", question: "Callable[[Reader], Awaitable[T]]") -> T:
    """Ask one question of the ledger's file, or end with its sentence."""
    from agent.ledger.ledger_errors import LedgerError
    from agent.ledger.reader import open_reader

    async def asked() -> T:
        reader = await open_reader(config.ledger)
        try:
            return await question(reader)
        finally:
            await reader.close()

    try:
        with session.waiting("reading the ledger"):
            return asyncio.run(asked())
    except LedgerError as error:
        exits.refused(error)
