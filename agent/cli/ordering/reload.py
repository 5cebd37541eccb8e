"""`gpubid reload`: the daemon reads its files again, as on SIGHUP, and reports whether it accepted them."""

import asyncio
from pathlib import Path
from typing import Any

from agent.cli.shared import daemon_socket, exits, session
from agent.telemetry.plain_text import plain


def reload(config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False) -> None:
    """Let the daemon read its files again, as SIGHUP does. Exit code 2 if it refuses them and keeps the old ones."""
    told = _told(config)
    if as_json:
        session.print_json(told)
    elif told["is_applied"]:
        _print(told)
    if not told["is_applied"]:
        problems = [] if as_json else [_sentence(row) for row in told["problems"]]
        exits.stop(exits.BAD_INPUT, [*problems, "refused: the daemon keeps its last good files"])


def _told(file: Path) -> dict[str, Any]:
    """Return the daemon's answer. The socket is found even if the file is broken."""
    from agent.config import market_place

    place = market_place.of_file(file)
    told = asyncio.run(daemon_socket.post(place, "/reload", {}))
    if told is None:
        sentence = f"no daemon runs on the ledger {place.ledger}: nothing was reloaded; `gpubid run` reads the files"
        exits.stop(exits.FAILED, [sentence])
    return told


def _print(told: dict[str, Any]) -> None:
    session.say(f"applied: {told['file']}, digest {told['digest'][:12]}")
    for row in told["notes"]:
        session.say(f"note: {row['about']}: {row['sentence']}")


def _sentence(row: dict[str, Any]) -> str:
    return plain(f"{row['file']}:{row['line']}: {row['key']}: {row['sentence']}")
