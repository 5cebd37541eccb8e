"""The client of the daemon's socket. It also finds that no daemon runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.cli.shared import exits
from agent.domain.work.order import Order

if TYPE_CHECKING:
    from agent.config.daemon_paths import DaemonPaths
    from agent.config.settings import Config

ANSWER_SECONDS = 120.0
Query = Mapping[str, str] | list[tuple[str, str]]
UNUSABLE = 422
"""The status of an order that matches nothing."""
NO_ANSWER = "the daemon did not answer; its log says why (`journalctl -u gpubid`)"
UNKNOWN = (
    "the daemon did not answer, and it may have taken the order: `gpubid ledger events --since 10m` shows whether it "
    "did; if not, stop the daemon and give the order again: this command then carries it out"
)


class Refused(Exception):
    """The daemon refused a request or gave no answer. The text is a message for the operator."""

    def __init__(self, sentence: str, code: str = "", exit_code: int = exits.FAILED) -> None:
        """Set the message, the daemon's code, and the exit code of the verb."""
        super().__init__(sentence)
        self.code = code
        self.exit_code = exit_code


def may_ask(config: "Config") -> bool:
    """Return whether a daemon's socket exists that we may open. After a crash it may have no daemon."""
    import os

    from agent.web import operator_socket

    return os.access(operator_socket.path_of(config.ledger, config.runtime), os.R_OK | os.W_OK)


def load() -> None:
    """Import the libraries of a question, so that a time limit on its answer does not include the import."""
    import aiohttp  # noqa: F401

    from agent.web import operator_socket  # noqa: F401


async def post(config: "Config | DaemonPaths", route: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the daemon's answer to an order, or None if no daemon listens. End with its message if it refuses."""
    said: dict[str, Any] | None = await _or_end(_path(config), "POST", route, json=body)
    return said


async def get(config: "Config | DaemonPaths", route: str, query: Query | None = None) -> Any:  # noqa: ANN401 - JSON
    """Return the daemon's answer to a question, or None if no daemon listens. End with its message if it refuses."""
    return await _or_end(_path(config), "GET", route, params=query)


async def running(config: "Config") -> dict[str, Any] | None:
    """Return the limits and workloads that the daemon runs with, or None if no daemon listens.

    Raises:
        Refused: the daemon stands by, or gives no answer.
    """
    said: dict[str, Any] | None = await asked(_path(config), "GET", "/running")
    return said


async def order(config: "Config | DaemonPaths", given: Order) -> dict[str, Any] | None:
    """Return the daemon's answer to an order, or None if no daemon listens.

    Raises:
        Refused: the order was not carried out, or that is not known.
    """
    said: dict[str, Any] | None = await asked(_path(config), "POST", "/say", json=body(given))
    return said


async def leases_of(config: "Config | DaemonPaths", given: Order) -> frozenset[str]:
    """Return the leases that an order concerns now, also those that are being released; none if it matches nothing."""
    try:
        shown = await asked(_path(config), "GET", "/preview", params=query(given))
    except Refused:
        return frozenset()
    return frozenset(row["lease"] for row in shown["leases"]) if shown is not None else frozenset()


def body(given: Order) -> dict[str, Any]:
    """Return an order as JSON."""
    return {
        "verb": given.verb,
        "target": given.target,
        "seconds": given.span.total_seconds() if given.span is not None else None,
        "into": given.into,
        "hours": given.hours,
        "slots": given.slots,
        "keep_disks": given.keep_disks,
        "leases": given.leases,
        "is_gone": given.is_gone,
    }


def query(given: Order) -> Mapping[str, str]:
    """Return an order as a question to /preview."""
    flags = {"keep_disks": given.keep_disks, "is_gone": given.is_gone}
    return {"verb": given.verb, "target": given.target, **{name: str(flag).lower() for name, flag in flags.items()}}


async def asked(path: Path, method: str, route: str, **more: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the answer of the daemon at a socket, or None if no daemon listens.

    Raises:
        Refused: the daemon refuses, the socket may not be opened, or no answer comes.
    """
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    try:
        if not _is_there(path):
            return None
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path)), timeout=timeout) as link,
            link.request(method, f"http://gpubid{route}", **more) as reply,
        ):
            said = await reply.json()
            status = reply.status
    except PermissionError:
        raise Refused(forbidden(path)) from None
    except aiohttp.ClientConnectorError as error:
        if isinstance(error.__cause__ or error.os_error, PermissionError):
            raise Refused(forbidden(path)) from None
        return None
    except (aiohttp.ClientError, OSError, ValueError):
        raise Refused(NO_ANSWER if method == "GET" else UNKNOWN) from None
    if isinstance(said, dict) and "error" in said:
        exit_code = exits.BAD_INPUT if status == UNUSABLE else exits.FAILED
        raise Refused(str(said.get("sentence") or said["error"]), str(said["error"]), exit_code)
    return said


def _is_there(path: Path) -> bool:
    return path.exists()


def forbidden(path: Path) -> str:
    """Return the message for a socket that this user may not open."""
    return f"{path}: you may not open it; run this as the daemon's user or a member of its group"


async def _or_end(path: Path, method: str, route: str, **more: Any) -> Any:  # noqa: ANN401 - JSON
    try:
        return await asked(path, method, route, **more)
    except Refused as error:
        exits.stop(error.exit_code, [str(error)])


def _path(config: "Config | DaemonPaths") -> Path:
    from agent.web import operator_socket

    return operator_socket.path_of(config.ledger, config.runtime)
