"""Logs are events: JSON lines under systemd or in a pipe, colours at a terminal, and no secret in either."""

import logging
import os
import sys
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from datetime import datetime
from typing import Any, TextIO

import structlog

from agent.telemetry import terminal_lines
from agent.telemetry.redaction import Redactor

Processor = Callable[[Any, str, MutableMapping[str, Any]], Any]

AUTO, JSON, TEXT = "auto", "json", "text"
FORMS = (AUTO, JSON, TEXT)
QUIET = ("aiohttp", "alembic", "apscheduler", "asyncio", "sqlalchemy", "urllib3", "vastai")
"""Libraries of which only warnings and errors are logged."""


def configure(
    redactor: Redactor,
    now: Callable[[], datetime],
    *,
    level: str = "INFO",
    stream: TextIO | None = None,
    environment: Mapping[str, str] | None = None,
    form: str = AUTO,
) -> None:
    """Send every log of the program and its libraries to `stream`, standard error by default.

    `form` is json, text, or auto: text at a terminal, JSON everywhere else.

    `now` returns the time of an event, so that a rehearsal's lines have the rehearsed time.
    """
    target = sys.stderr if stream is None else stream
    is_pipe = not target.isatty() or is_journal(target, os.environ if environment is None else environment)
    is_json = form == JSON or (form == AUTO and is_pipe)
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        _stamp(now),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        redactor,
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        # Tests capture logs, and a reload may change the level: a cached logger would miss both.
        cache_logger_on_first_use=False,
    )
    _configure_libraries(_handler(target, shared, is_json=is_json), level)


def _handler(target: TextIO, shared: Sequence[Processor], *, is_json: bool) -> logging.Handler:
    """Return the handler that writes every event to `target`; `shared` also processes the events of libraries."""
    text = terminal_lines.TerminalLines(has_colors=target.isatty())
    last: Processor = structlog.processors.JSONRenderer(default=str) if is_json else text
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    )
    return handler


def _configure_libraries(handler: logging.Handler, level: str) -> None:
    """Send the log of the libraries through `handler`, and only warnings of the quiet ones."""
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def is_journal(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether systemd connected `stream` to its journal."""
    device, _, inode = environment.get("JOURNAL_STREAM", "").partition(":")
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return (device, inode) == (str(status.st_dev), str(status.st_ino))


def _stamp(now: Callable[[], datetime]) -> Processor:
    def stamp(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["at"] = now().isoformat(timespec="milliseconds")
        return event

    return stamp
