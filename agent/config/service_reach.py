"""Changes of a reload that do not reach the running daemon, or only where they stop it from paying."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from agent.config.settings import Config, MarketSettings
from agent.domain.record.event_kind import LoggedKind
from agent.domain.work.workload import Workload

_OF_A_START: Mapping[str, Callable[[Config], object]] = {
    "ledger.path": lambda config: config.ledger,
    "ledger.url": lambda config: config.ledger_server,
    "ledger.log_mb": lambda config: config.log_bytes,
    "operators.group": lambda config: config.operators.group,
    "web.listen": lambda config: (config.listen.host, config.listen.port),
    "web.names": lambda config: config.listen.names,
    "web.credential": lambda config: config.listen.credential,
    "web.webhook_credential": lambda config: config.listen.webhook_credential,
}
"""The value of each key, outside the markets' tables, that is read at a start alone."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One change that a reload does not make. `event` and `about` are for the log; `sentence` says what to do."""

    event: str
    about: str
    sentence: str


def shortfalls(before: Config, after: Config) -> Iterator[Shortfall]:
    """Yield the changes that a reload accepts and the running daemon does not make, and each withdrawn `spend`.

    The markets of `before`, and what else is read at a start alone, are those that the program started with.
    """
    for name in _removed(before, after):
        sentence = "is gone from the file: nothing is paid for there any more; it is looked at until the next start"
        yield Shortfall(LoggedKind.CONFIG_DEFERRED, f"markets.{name}", sentence)
    for old, new in _pairs(before, after):
        if _is_withdrawn(old, new):
            sentence = "is false: nothing is paid for there from now on, and leases there go on"
            yield Shortfall(LoggedKind.CONFIG_NOTED, f"markets.{old.name}.spend", sentence)
    for key in _deferred(before, after):
        yield Shortfall(
            LoggedKind.CONFIG_DEFERRED, key, "applies from the next start; until then the old value applies"
        )


def why_unpaid(market: MarketSettings, after: Config) -> str:
    """Return why nothing is paid for on a running market under new files, or an empty text."""
    new = after.market(market.name)
    if new is None:
        return f"[markets.{market.name}] is gone from the file since a reload: write it again to let it pay"
    if new.spend and not market.spend and not market.is_simulated:
        return f"spend = true in [markets.{market.name}] applies from the next start: restart gpubid to let it pay"
    return running(market, after).why_unpaid


def running(market: MarketSettings, after: Config) -> MarketSettings:
    """Return the settings of a running market under new files: only its permission to spend may be withdrawn."""
    new = after.market(market.name)
    return replace(market, is_withdrawn=new is not None and _is_withdrawn(market, new))


def in_force(start: Config, after: Config) -> Config:
    """Return the configuration of a running daemon under new files: `after`, with what is read at a start alone."""
    return replace(
        after,
        markets=tuple(running(each, after) for each in start.markets),
        ledger=start.ledger,
        ledger_server=start.ledger_server,
        listen=start.listen,
        operators=replace(after.operators, group=start.operators.group),
        recording_bytes=start.recording_bytes,
        log_bytes=start.log_bytes,
    )


def on_kept_markets(before: Config, after: Config) -> tuple[Workload, ...]:
    """Return the new workloads. One that may use every market uses those of the new files, not a removed one."""
    if not list(_removed(before, after)):
        return after.workloads
    kept = tuple(market.name for market in after.markets)
    return tuple(work if work.markets else replace(work, markets=kept) for work in after.workloads)


def _deferred(before: Config, after: Config) -> Iterator[str]:
    yield from (f"markets.{new.name}" for new in after.markets if before.market(new.name) is None)
    for old, new in _pairs(before, after):
        yield from _deferred_of_market(old, new)
    yield from (key for key, value in _OF_A_START.items() if value(before) != value(after))
    was, wanted = before.recording_bytes, after.recording_bytes
    if was != wanted:
        yield "lab.record_mb" if was and wanted else "lab.record"


def _deferred_of_market(old: MarketSettings, new: MarketSettings) -> Iterator[str]:
    for key in ("url", "simulated", "credential", "credential_file"):
        if getattr(old, key) != getattr(new, key):
            yield f"markets.{old.name}.{key}"
    for key in type(old.options).model_fields if old.options is not None else ():
        if getattr(old.options, key) != getattr(new.options, key):
            yield f"markets.{old.name}.{key}"
    if new.spend and not old.spend:
        yield f"markets.{old.name}.spend"


def _is_withdrawn(old: MarketSettings, new: MarketSettings) -> bool:
    """Return whether new settings take the permission to spend from a live market that started with it."""
    return old.spend and not new.spend and not old.is_simulated


def _removed(before: Config, after: Config) -> Iterator[str]:
    return (old.name for old in before.markets if after.market(old.name) is None)


def _pairs(before: Config, after: Config) -> Iterator[tuple[MarketSettings, MarketSettings]]:
    for old in before.markets:
        new = after.market(old.name)
        if new is not None:
            yield old, new
