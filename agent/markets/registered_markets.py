"""Every known market, by the name of its table in agent.toml; the composition root connects only through here."""

from collections.abc import Callable, Mapping
from typing import Protocol

from agent.clock import Clock
from agent.markets import port, transport
from agent.markets.http_exchange import Exchange
from agent.markets.runpod import market as runpod
from agent.markets.vast import market as vast


class Connect(Protocol):
    """Returns the market at a URL, given a source of its key, the time, and a random number from 0 to 1.

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
