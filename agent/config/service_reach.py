"""Changes of a reload that do not reach the running daemon."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent.config.settings import Config, MarketSettings
from agent.domain.record.event_kind import LoggedKind
from agent.domain.work.workload import Workload


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One change that a reload does not make. `event` and `about` are for the log; `sentence` says what to do."""

    event: str
    about: str
    sentence: str


def shortfalls(before: Config, after: Config) -> Iterator[Shortfall]:
    """Yield the changes that a reload accepts and the running daemon does not make."""
    for name in _removed(before, after):
        sentence = "is gone from the file: nothing is paid for there any more; it is looked at until the next start"
        yield Shortfall(LoggedKind.CONFIG_DEFERRED, f"markets.{name}", sentence)
    for key in _deferred(before, after):
        yield Shortfall(
            LoggedKind.CONFIG_DEFERRED, key, "applies from the next start; until then the old value applies"
        )


def why_unpaid(market: MarketSettings, after: Config) -> str:
    """Return why nothing is paid for on a running market under new files, or an empty text."""
    if after.market(market.name) is None:
        return f"[markets.{market.name}] is gone from the file since a reload: write it again to let it pay"
    return market.why_unpaid


def on_kept_markets(before: Config, after: Config) -> tuple[Workload, ...]:
    """Return the new workloads. One that may use every market uses those of the new files, not a removed one."""
    if not list(_removed(before, after)):
        return after.workloads
    kept = tuple(market.name for market in after.markets)
    return tuple(work if work.markets else replace(work, markets=kept) for work in after.workloads)


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
    if before.operators.group != after.operators.group:
        yield "operators.group"
    if (before.listen.host, before.listen.port) != (after.listen.host, after.listen.port):
        yield "web.listen"
    for key in ("names", "credential", "webhook_credential"):
        if getattr(before.listen, key) != getattr(after.listen, key):
            yield f"web.{key}"


def _removed(before: Config, after: Config) -> Iterator[str]:
    return (old.name for old in before.markets if after.market(old.name) is None)


def _pairs(before: Config, after: Config) -> Iterator[tuple[MarketSettings, MarketSettings]]:
    for old in before.markets:
        new = after.market(old.name)
        if new is not None:
            yield old, new
