"""Whether the server has a working client of each cloud.

The server builds the client of a cloud when it needs one, and keeps it for five minutes after the last use. If it
cannot build one (the cloud does not answer, or a package is missing), it ignores the cloud. Then it calls a machine
terminated at once, without ending it. A plan of that cloud alone builds the client and keeps it, and has rows only with
it. So each cloud is asked for a plan about once a minute, and at every look while a machine of it ends.

A question that takes long goes on while the look goes on: no release waits for it.
"""

import asyncio
from collections.abc import Collection, Mapping

import structlog

from agent import clock as clocks
from agent.markets import market_errors
from agent.markets.dstack import client, orders, rows

log = structlog.get_logger("gpubid.dstack")

EVERY_SECONDS = 60.0
"""After so long a cloud is asked again although no machine of it ends."""
PATIENCE_SECONDS = 2.0
"""How long a look waits for the answers. A later answer counts for the next look."""


class CloudClients:
    """Asks for a plan of each cloud, and remembers which had rows."""

    def __init__(self, endpoints: client.DstackClient, clock: clocks.Clock) -> None:
        """Begin without any question."""
        self._client = endpoints
        self._clock = clock
        self._proven: dict[str, float] = {}
        """The clouds whose last answer had rows, with the monotonic second of the question."""
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def ask(self, clouds: Mapping[str, bool]) -> None:
        """Ask about clouds, each with whether a machine of it ends; wait a little for the answers."""
        self._take_answers()
        self._proven = {cloud: at for cloud, at in self._proven.items() if cloud in clouds or cloud in self._asking}
        for cloud, is_urgent in clouds.items():
            if cloud not in self._asking and (is_urgent or self._is_due(cloud)):
                self._asking[cloud] = asyncio.create_task(self._question(cloud))
        if self._asking:
            await asyncio.wait(self._asking.values(), timeout=PATIENCE_SECONDS)
        self._take_answers()

    def proven(self, backends: Collection[str]) -> Mapping[str, float]:
        """Return those of some clouds whose last answer had rows, with the monotonic second of the question."""
        return {cloud: at for cloud, at in self._proven.items() if cloud in backends}

    async def close(self) -> None:
        """Drop the questions that are not answered yet."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    def _take_answers(self) -> None:
        """Drop the questions that are answered. What no market error explains is raised here, not lost."""
        answered = [task for task in self._asking.values() if task.done()]
        self._asking = {cloud: task for cloud, task in self._asking.items() if not task.done()}
        errors = [error for task in answered if not task.cancelled() and (error := task.exception()) is not None]
        if errors:
            raise errors[0]

    def _is_due(self, cloud: str) -> bool:
        return self._clock.monotonic() - self._proven.get(cloud, -EVERY_SECONDS) >= EVERY_SECONDS

    async def _question(self, cloud: str) -> None:
        asked_at, why = self._clock.monotonic(), ""
        try:
            has_rows = bool(rows.plan(await self._client.plan(orders.of_cloud(cloud), 1)).offers)
        except market_errors.Unauthorized:
            # The project's own answer may have any reader, if it is public. Lists of runs have none for such a reader.
            raise
        except market_errors.MarketError as error:
            has_rows, why = False, str(error)
        if has_rows:
            self._proven[cloud] = asked_at
        elif self._proven.pop(cloud, None) is not None:
            why = why or "its plan has no offer"
            log.warning("cloud.unproven", market="dstack", cloud=cloud, reason=why)
