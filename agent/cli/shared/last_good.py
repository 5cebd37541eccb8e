"""A broken configuration, while its daemon runs with the last good one. The daemon still answers and takes orders."""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from agent.cli.shared import daemon_socket, exits, session
from agent.config.problems import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.config.daemon_paths import DaemonPaths
    from agent.config.settings import Config
    from agent.decide.strategy import Tuned


@dataclass(frozen=True, slots=True)
class Broken:
    """A file with mistakes, and the paths of its daemon's ledger and socket as far as the file says."""

    file: Path
    place: "DaemonPaths"
    mistakes: tuple[str, ...]

    def asked(self, route: str, query: daemon_socket.Query | None = None) -> Any:  # noqa: ANN401 - JSON
        """Return the daemon's answer. Without a daemon, end with the mistakes."""
        return self.answer_or_end(asyncio.run(daemon_socket.get(self.place, route, query)))

    def answer_or_end(self, answer: Any) -> Any:  # noqa: ANN401 - JSON
        """Return a daemon's answer and print that its file is the last good one; without one, end with the mistakes."""
        if answer is None:
            self.end()
        sys.stderr.write(f"gpubid: {self.file} is broken; the daemon answers from its last good file\n")
        return answer

    def end(self) -> NoReturn:
        """End with every mistake."""
        exits.stop(exits.BAD_INPUT, self.mistakes)


def read(path: Path) -> "tuple[Config, Mapping[str, Tuned]] | Broken":
    """Return the configuration and the tuned strategies, or the broken file with its mistakes."""
    from agent.config import daemon_paths
    from agent.simulator import climate_files

    try:
        return session.parse(path, climate_files.names())
    except ConfigError as error:
        return Broken(path, daemon_paths.of_file(path), tuple(str(problem) for problem in error.problems))


def place(config: Path) -> "Config | DaemonPaths":
    """Return the configuration, or of a broken file its paths. A mistake elsewhere must not prevent a backup.

    Ends with every mistake if the broken file's ledger does not exist.
    """
    parsed = read(config)
    if not isinstance(parsed, Broken):
        return parsed[0]
    if session.may_read(parsed.place.ledger) and not parsed.place.ledger.exists():
        parsed.end()
    return parsed.place
