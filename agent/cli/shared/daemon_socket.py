"""The client of the daemon's socket: ask it, or find that no daemon runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent.cli.shared import exits

if TYPE_CHECKING:
    from agent.config.market_place import Place
    from agent.config.settings import Config

ANSWER_SECONDS = 120.0
Query = Mapping[str, str] | list[tuple[str, str]]
UNUSABLE = 422
"""The status of an order that matches nothing."""


def may_ask(config: "Config") -> bool:
    """Return whether a daemon's socket exists that we may open; after a crash nobody may serve it."""
    import os

    from agent.web import operator_socket

    return os.access(operator_socket.path_of(config.ledger, config.runtime), os.R_OK | os.W_OK)


async def post(config: "Config | Place", route: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the daemon's answer to an order, or None when no daemon listens; end with its sentence if it refuses."""
    said: dict[str, Any] | None = await _asked(config, "POST", route, json=body)
    return said


async def get(
    config: "Config | Place", route: str, query: Mapping[str, str] | list[tuple[str, str]] | None = None
) -> Any:  # noqa: ANN401 - JSON
    """Return what the daemon shows, or None when no daemon listens; end with its sentence if it refuses."""
    return await _asked(config, "GET", route, params=query)


async def _asked(config: "Config | Place", method: str, route: str, **more: Any) -> Any:  # noqa: ANN401 - JSON
    import aiohttp

    from agent.web import operator_socket

    path = operator_socket.path_of(config.ledger, config.runtime)
    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    try:
        if not path.exists():
            return None
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path)), timeout=timeout) as link,
            link.request(method, f"http://gpubid{route}", **more) as reply,
        ):
            said = await reply.json()
            status = reply.status
    except PermissionError:
        exits.stop(
            exits.FAILED, [f"{path}: you may not open it; run this as the daemon's user or a member of its group"]
        )
    except aiohttp.ClientConnectorError as error:
        if isinstance(error.__cause__ or error.os_error, PermissionError):
            sentence = f"{path}: you may not open it; run this as the daemon's user or a member of its group"
            exits.stop(exits.FAILED, [sentence])
        return None
    except (aiohttp.ClientError, TimeoutError):
        way = "stop the daemon and give the order again: this command then carries it out"
        exits.stop(exits.FAILED, [f"the daemon did not answer; {way if method == 'POST' else 'look at its log'}"])
    if isinstance(said, dict) and "error" in said:
        code = exits.BAD_INPUT if status == UNUSABLE else exits.FAILED
        exits.stop(code, [str(said.get("sentence") or said["error"])])
    return said
