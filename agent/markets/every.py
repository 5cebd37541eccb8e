"""Every market there is, by the name of its table in agent.toml; the composition root connects through here alone."""

from collections.abc import Callable, Mapping
from typing import Protocol

from agent.clock import Clock
from agent.markets import port, transport
from agent.markets.http_exchange import Exchange
from agent.markets.runpod import market as runpod
from agent.markets.vast import market as vast


class Connect(Protocol):
    """Returns the market at a URL, given what gives its key, the time, and a number from 0 to 1.

    Requests go `through` the network unless something else carries them.
    """

    def __call__(
        self,
        url: str,
        key: transport.Key,
        clock: Clock,
        jitter: Callable[[], float],
        /,
        *,
        through: Exchange | None = None,
    ) -> port.Market:
        """Connect; nothing is asked yet."""
        ...


MARKETS: Mapping[str, Connect] = {"vast": vast.connect, "runpod": runpod.connect}
