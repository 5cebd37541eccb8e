"""A question to the ledger: the file answers, or the daemon.

The daemon is asked where the file is not ours to read, and where agent.toml is broken: it runs on its last good one.
"""

import asyncio
from collections.abc import Awaitable, Callable
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

    `workload` must be one of the configuration, where one is named. With `first` the daemon is asked before the file.
    """
    read = last_good.read(file)
    if isinstance(read, last_good.Broken):
        return read.asked(route, query)
    config, _ = read
    must_know(config, workload)
    told = daemon(config, route, query, first=first)
    return told if told is not None else ledger(config, lambda reader: question(config, reader))


def must_know(config: "Config", workload: str | None) -> None:
    """End with the known workloads if the name is unknown."""
    names = [work.name for work in config.workloads]
    if workload is not None and workload not in names:
        exits.stop(exits.BAD_INPUT, [f"there is no workload {workload!r}; known: {', '.join(names)}"])


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
