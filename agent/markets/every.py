"""Every market there is, by the name of its table in agent.toml; the composition root connects through here alone."""

from collections.abc import Callable, Mapping

from agent.clock import Clock
from agent.markets import port, transport
from agent.markets.runpod import market as runpod
from agent.markets.vast import market as vast

Connect = Callable[[str, transport.Key, Clock, Callable[[], float]], port.Market]
"""Returns the market at a URL, given what gives its key, the time, and a number from 0 to 1."""

MARKETS: Mapping[str, Connect] = {"vast": vast.connect, "runpod": runpod.connect}
