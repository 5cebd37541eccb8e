"""Changes of a reload that do not reach the running daemon."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.config.settings import Config, MarketSettings
from agent.domain.record.event_kind import LoggedKind


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One change that a reload does not make. `event` and `about` are for the log; `sentence` says what to do."""

    event: str
    about: str
    sentence: str


def shortfalls(before: Config, after: Config) -> Iterator[Shortfall]:
    """Yield the changes that a reload accepts and the running daemon does not make."""
    for key in _deferred(before, after):
        yield Shortfall(
            LoggedKind.CONFIG_DEFERRED, key, "applies from the next start; until then the old value applies"
        )


def is_spend_withdrawn(before: Config, after: Config) -> bool:
    """Return whether a market has lost the permission to spend. That applies at once."""
    return any(old.may_spend and not new.may_spend for old, new in _pairs(before, after))


def _deferred(before: Config, after: Config) -> Iterator[str]:
    yield from (f"markets.{new.name}" for new in after.markets if before.market(new.name) is None)
    for old, new in _pairs(before, after):
        for key in ("url", "simulated", "credential", "credential_file", "spend"):
            if getattr(old, key) != getattr(new, key):
                yield f"markets.{old.name}.{key}"
    places = ("ledger.path", before.ledger, after.ledger), ("ledger.url", before.ledger_server, after.ledger_server)
    yield from (key for key, old_place, new_place in places if old_place != new_place)
    if (before.listen.host, before.listen.port) != (after.listen.host, after.listen.port):
        yield "web.listen"
    for key in ("names", "credential", "webhook_credential"):
        if getattr(before.listen, key) != getattr(after.listen, key):
            yield f"web.{key}"


def _pairs(before: Config, after: Config) -> Iterator[tuple[MarketSettings, MarketSettings]]:
    for old in before.markets:
        new = after.market(old.name)
        if new is not None:
            yield old, new
