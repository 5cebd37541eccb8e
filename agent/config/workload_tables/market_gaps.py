"""Work that a market cannot look after: an end, a sign of readiness or a stall that it hides, a keyless switch."""

from collections.abc import Iterable, Iterator

from agent.config.workload_tables.workload_table import WorkloadTable
from agent.markets import registered_markets

Gap = tuple[tuple[str, ...], str, str]
"""The key below the workload's table, the code of the problem, and the sentence."""


def of(name: str, table: WorkloadTable, configured: Iterable[str]) -> Iterator[Gap]:
    """Yield the gaps of a workload, given the names of the configured markets."""
    records = {each: registered_markets.record(each) for each in sorted(configured)}
    named = {*table.markets, *table.fallback_markets}
    used = {each: record for each, record in records.items() if not table.markets or each in named}
    if table.kind == "batch" and (table.guard is None or table.guard.bucket is None):
        blind = [each for each, record in used.items() if record.restarts_ended]
        mute = [each for each in blind if not used[each].keeps_logs]
        if mute:
            yield ("kind",), "never_done", _mute(mute, name, _key(table, mute))
        elif blind and table.done_line is None:
            yield ("kind",), "never_done", _blind(blind, name, _key(table, blind))
    silent = [each for each, record in used.items() if not record.keeps_logs]
    yield from _unseen(name, table, silent) if silent else ()
    keyless = [each for each, record in used.items() if record.instance_key is None]
    if keyless and table.guard is not None and table.guard.deadman is not None:
        yield ("guard", "deadman"), "conflict", _keyless(keyless, _key(table, keyless))


def _unseen(name: str, table: WorkloadTable, markets: list[str]) -> Iterator[Gap]:
    """Yield the signs of a workload that only a log could show, on markets that keep none."""
    without = f"{_key(table, markets)} without {' and '.join(markets)}"
    if table.ready == "log":
        sentence = f'{markets[0]} keeps no log, so the line is never seen; write ready = "port" or "http", or {without}'
        yield ("ready",), "never_ready", sentence
    has_report = table.guard is not None and table.guard.bucket is not None
    has_page = table.deadline is not None and table.deadline.progress == "http"
    if table.stalled_after != "off" and not has_report and not has_page:
        sentence = f"{markets[0]} keeps no log, so no stall is found; write [workloads.{name}.guard] with bucket"
        yield ("stalled_after",), "never_stalled", f"{sentence}, or {without}"


def _key(table: WorkloadTable, markets: list[str]) -> str:
    """Return the key that lets a workload use some markets."""
    return "fallback_markets" if set(markets) <= {*table.fallback_markets} - {*table.markets} else "markets"


def _blind(markets: list[str], name: str, key: str) -> str:
    return (
        f"{markets[0]} restarts a container that ends, so only its log or a guard with a bucket shows the end; "
        f"write done_line, [workloads.{name}.guard] with bucket, or {key} without {' and '.join(markets)}"
    )


def _mute(markets: list[str], name: str, key: str) -> str:
    return (
        f"{markets[0]} keeps no log and its machine goes on when a container ends, so only a guard with a bucket shows "
        f"the end; write [workloads.{name}.guard] with bucket, or {key} without {' and '.join(markets)}"
    )


def _keyless(markets: list[str], key: str) -> str:
    return (
        f"{markets[0]} gives an instance no key to stop itself with, so the switch would never fire there; "
        f'write deadman = "never", or {key} without {" and ".join(markets)}'
    )
