"""Maintenance that hosts announce: GraphQL shows it with the machine of a pod.

Invariant: this question is separate from the one about the account. If the market drops a field of it, the account's
still works.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import structlog

from agent import clock as clocks
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.markets import market_errors, tolerant_rows
from agent.markets.runpod import client, graph, history

log = structlog.get_logger("gpubid.maintenance")

QUESTION = """
query maintenance {
  myself { pods { id machine { maintenanceStart maintenanceEnd } } }
}"""
ASK_EVERY = timedelta(minutes=10)
"""Hosts plan maintenance hours ahead."""
ASK_AGAIN = timedelta(hours=6)
"""After a refusal: the market may no longer have the fields."""


class _Machine(msgspec.Struct):
    maintenanceStart: str | None = None  # noqa: N815 - the vendor's spelling
    maintenanceEnd: str | None = None  # noqa: N815 - as above


class _Pod(msgspec.Struct):
    id: str
    machine: _Machine | None = None


class _Myself(msgspec.Struct):
    pods: list[_Pod | None] | None = None


class Maintenance:
    """The announcements of one account, each dated when it was first seen."""

    def __init__(self, endpoints: client.RunPodClient, clock: clocks.Clock, market: str) -> None:
        """Ask nothing yet."""
        self._client, self._clock, self._market = endpoints, clock, market
        self._due = float("-inf")
        self._announced: dict[str, MarketEvent] = {}

    async def events(self) -> list[MarketEvent]:
        """Return the announcements by the market's last answer."""
        if self._clock.monotonic() >= self._due:
            # Set before the question, so that the next read does not ask again, whatever the answer is.
            self._due = self._clock.monotonic() + ASK_EVERY.total_seconds()
            try:
                answered = await self._client.ask_graph(QUESTION, {})
                self._announced = self._read(answered.data) | self._unread(answered)
            except graph.Retired:
                self._announced, self._due = {}, self._clock.monotonic() + ASK_AGAIN.total_seconds()
            except market_errors.MarketError as error:
                log.warning("maintenance.unread", market=self._market, code=error.code)
        return list(self._announced.values())

    def _unread(self, answered: graph.Answered) -> dict[str, MarketEvent]:
        """Return the known announcements for the pods that an answer with errors lacks, or shows without a machine."""
        if not answered.errors:
            return {}
        pods = _pods(answered.data)
        now, read = self._clock.now(), {pod.id for pod in pods if pod.machine is not None}
        unread = {key: event for key, event in self._announced.items() if event.instance_id not in read}
        return {key: event for key, event in unread.items() if (event.ends_at or event.begins_at or now) > now}

    def _read(self, data: Mapping[str, Any]) -> dict[str, MarketEvent]:
        now, announced = self._clock.now(), {}
        for pod in _pods(data):
            begins = moment((pod.machine.maintenanceStart if pod.machine else None) or "")
            ends = moment((pod.machine.maintenanceEnd if pod.machine else None) or "")
            if begins is None or (ends or begins) <= now:
                continue
            key = f"{pod.id}@maintenance-{begins.timestamp():.0f}-{(ends or begins).timestamp():.0f}"
            event = MarketEvent(
                key, self._market, MarketEventKind.MAINTENANCE, pod.id, now, begins_at=begins, ends_at=ends
            )
            announced[key] = self._announced.get(key, event)
        return announced


def _pods(data: Mapping[str, Any]) -> list[_Pod]:
    pods = tolerant_rows.row(data.get("myself") or {}, _Myself, "The account").pods or []
    return [pod for pod in pods if pod is not None]


def moment(stamp: str) -> datetime | None:
    """Return an instant in either of GraphQL's two formats, or None."""
    try:
        read = datetime.fromisoformat(stamp[:40])
    except ValueError:
        return history.moment(stamp)
    try:
        return read.astimezone(UTC) if read.tzinfo is not None else read.replace(tzinfo=UTC)
    except OverflowError:
        # The first hours of the year 1 east of Greenwich, the last of 9999 west of it.
        return None
