"""`gpubid reload`: the daemon reads its files again, as on SIGHUP, and reports whether it accepted them."""

import asyncio
from pathlib import Path
from typing import Any

from agent.cli.shared import daemon_socket, exits, session
from agent.telemetry.plain_text import plain


def reload(config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False) -> None:
    """Let the daemon read its files again, as SIGHUP does. Exit code 2 if it refuses them and keeps the old ones."""
    answer = _answer_of_daemon(config)
    if as_json:
        session.print_json(answer)
    elif answer["is_applied"]:
        _print(answer)
    if not answer["is_applied"]:
        problems = [] if as_json else [_sentence(row) for row in answer["problems"]]
        exits.stop(exits.BAD_INPUT, [*problems, "refused: the daemon keeps its last good files"])


def _answer_of_daemon(file: Path) -> dict[str, Any]:
    """Return the daemon's answer. The socket is found even if the file is broken."""
    from agent.config import daemon_paths

    place = daemon_paths.of_file(file)
    answer = asyncio.run(daemon_socket.post(place, "/reload", {}))
    if answer is None:
        where = "" if place.is_unclear else f" on the ledger {place.ledger}"
        sentence = f"{place.no_daemon()}{where}: nothing was reloaded; `gpubid run` reads the files"
        exits.stop(exits.FAILED, [sentence])
    return answer


def _print(answer: dict[str, Any]) -> None:
    session.say(f"applied: {answer['file']}, digest {answer['digest'][:12]}")
    for row in answer["notes"]:
        session.say(f"note: {row['about']}: {row['sentence']}")


def _sentence(row: dict[str, Any]) -> str:
    return plain(f"{row['file']}:{row['line']}: {row['key']}: {row['sentence']}")
