"""The log for a person at a terminal: a decision is one readable line, everything else as structlog prints it."""

from collections.abc import MutableMapping
from datetime import datetime
from typing import Any

import structlog

from agent.telemetry.plain_text import plain

DECISIONS = frozenset({"decision.made", "decision.held"})


class TerminalLines:
    """Renders the events of the log, in the place of a JSON renderer."""

    def __init__(self, *, has_colors: bool) -> None:
        """Print events other than decisions in columns, in colour or without: a file has none."""
        self._columns = structlog.dev.ConsoleRenderer(colors=has_colors)

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> str:  # noqa: ANN401 - structlog's
        """Return the text of an event."""
        return decision(event) if event.get("event") in DECISIONS else str(self._columns(logger, method, event))


def decision(event: MutableMapping[str, Any]) -> str:
    """Return a decision as a line: time, slot, what, host, price and why."""
    at = f"{datetime.fromisoformat(event['at']):%H:%M:%S}"
    where = f" {event['market']}/{event['host']}" if event.get("host") else ""
    price = event.get("dollars_per_hour")
    cost = f" ${price:.4f}/h" if price is not None else ""
    return plain(f"{at} {event['slot']} {event['kind']}{where}{cost}: {event['why']}")
