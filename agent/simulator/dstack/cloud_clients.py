"""The server's clients of its clouds: made when one is needed, and kept for five minutes after the last use of any."""

import random
from collections.abc import Collection

from agent.simulator.dstack import assumed_figures


class CloudClients:
    """The clients that the server has."""

    def __init__(self, dice: random.Random, share: float) -> None:
        """Begin without any; `share` of the tries to make one fail."""
        self.share = share
        self.unavailable: frozenset[str] = frozenset()
        """The clouds of which no client can be made now."""
        self._dice = dice
        self._made: set[str] = set()
        self._used = 0.0

    def drop(self) -> None:
        """Lose all clients, as a restart of the server does."""
        self._made.clear()

    def used(self, backends: Collection[str], now: float) -> list[str]:
        """Return those of the project's clouds of which the server has a client or can make one; all count as used."""
        if now - self._used > assumed_figures.CLIENT_SECONDS:
            self._made.clear()
        self._made.intersection_update(backends)
        self._made.update(cloud for cloud in backends if cloud not in self._made and self._can_be_made(cloud))
        self._used = now
        return [cloud for cloud in backends if cloud in self._made]

    def _can_be_made(self, cloud: str) -> bool:
        return cloud not in self.unavailable and not (self.share and self._dice.random() < self.share)
