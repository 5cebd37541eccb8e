"""The outside world of the program: clock, keys, addresses and markets. A test hands in its own."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agent.act import rent_terms
from agent.clock import Clock
from agent.config.settings import MarketSettings
from agent.ledger.storage_port import Password, Storage
from agent.markets import instrumented, port, registered_markets
from agent.markets.http_exchange import Exchange


@dataclass(frozen=True, slots=True)
class Outside:
    """The program's outside world; a test hands in its own."""

    clock: Clock
    secret: Callable[[MarketSettings], str]
    urls: Mapping[str, str]
    new_id: Callable[[], str] = lambda: secrets.token_hex(8)
    jitter: Callable[[], float] = lambda: secrets.randbelow(1000) / 1000
    fleet_id: str = ""
    credential: rent_terms.Credential = rent_terms.none
    observer: Callable[[str], Callable[[str, str, float], None]] | None = None
    anew: frozenset[str] = frozenset()
    """Simulated markets that began again: nothing that the ledger records there exists any more."""
    exchanges: Mapping[str, Exchange] = field(default_factory=dict)
    """Carries requests to a market, by the market's name; missing means the network."""
    ledger_password: Password = lambda *_: ""
    """Returns the password of a ledger on a server, by the credential's name or file."""
    ledger_place: Storage | None = None
    """The ledger's place, where this process has won it as a standby; None means as the configuration names it."""
    concealed: Callable[[str], str] = str
    """Returns a text without the keys that this process has read."""

    def connect(self, settings: MarketSettings) -> port.Market:
        """Return a market; no request is sent yet."""
        url = self.urls.get(settings.name, settings.url)
        given = (url, lambda: self.secret(settings), self.clock, self.jitter)
        record, through = registered_markets.record(settings.name), self.exchanges.get(settings.name)
        market = record.connect(*given, options=settings.connect_options, through=through)
        if self.observer is None:
            return market
        return instrumented.Instrumented(market, self.observer(settings.name), self.clock.monotonic)
