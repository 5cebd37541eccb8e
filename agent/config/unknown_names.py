"""Names in a configuration that nothing has, or that do not fit: of strategies, climates, markets and workloads."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from agent.config import problems
from agent.config.files import source
from agent.domain.market import card_memory
from agent.domain.market.gpu import GpuModel
from agent.markets import registered_markets


def text_at(values: object, *path: str) -> str | None:
    """Return the text at `path` of unchecked values, or None if there is no text."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values if isinstance(values, str) else None


def unfit_climates(
    read: source.Source, climates: Collection[str] | None, runs_processes: Callable[[str], bool]
) -> Iterator[problems.Problem]:
    """Find unknown climates, and climates that would run a workload's command on the operator's machine."""
    markets = read.values.get("markets")
    for name in markets if isinstance(markets, dict) else ():
        path = ("markets", name, "simulated")
        climate = text_at(read.values, *path)
        if climate is None or climates is None:
            continue
        if climate not in climates:
            sentence = f"there is no climate {problems.shown(climate)}; {problems.nearest(climate, climates)}"
            yield read.problem(path, "unknown_climate", sentence)
        elif runs_processes(climate):
            sentence = (
                f"the climate {problems.shown(climate)} runs the workload's command on this machine, which a daemon "
                f"never does; name another, or use `gpubid rehearse --climate {climate}`"
            )
            yield read.problem(path, "climate_runs_processes", sentence)


def _workload_texts(read: source.Source, key: str) -> Iterator[tuple[tuple[str, str, str], str]]:
    workloads = read.values.get("workloads")
    for name in workloads if isinstance(workloads, dict) else ():
        text = text_at(workloads, name, key)
        if text is not None:
            yield ("workloads", name, key), text


def unknown_strategies(read: source.Source, strategies: set[str]) -> Iterator[problems.Problem]:
    """Yield the strategies that a workload names and nobody has, and those that it names twice."""
    for path, name in _workload_texts(read, "strategy"):
        if name not in strategies:
            sentence = f"there is no strategy {problems.shown(name)}; {problems.nearest(name, strategies)}"
            yield read.problem(path, "unknown_strategy", sentence)
    for path, named in _workload_lists(read, "shadow"):
        for unknown in (each for each in named if isinstance(each, str) and each not in strategies):
            sentence = f"there is no strategy {problems.shown(unknown)}; {problems.nearest(unknown, strategies)}"
            yield read.problem(path, "unknown_strategy", sentence)
        if len(set(map(str, named))) < len(named):
            yield read.problem(path, "duplicate", "names a strategy twice; keep one")


def _workload_lists(read: source.Source, key: str) -> Iterator[tuple[tuple[str, str, str], list[object]]]:
    workloads = read.values.get("workloads")
    for name, table in workloads.items() if isinstance(workloads, dict) else ():
        named = table.get(key) if isinstance(table, dict) else None
        if isinstance(named, list):
            yield ("workloads", name, key), named


def bad_queries(read: source.Source, check_query: Callable[[str], object] | None) -> Iterator[problems.Problem]:
    """Yield the queries that the market's search grammar does not know."""
    for path, query in _workload_texts(read, "query"):
        try:
            if check_query is not None and query:
                check_query(query)
        except ValueError as error:
            yield read.problem(path, "bad_query", str(error))


def unknown_markets(read: source.Source) -> Iterator[problems.Problem]:
    """Yield the markets that a workload names and no table configures."""
    configured = read.values.get("markets")
    workloads = read.values.get("workloads")
    if not isinstance(configured, dict) or not isinstance(workloads, dict):
        return
    for key in ("markets", "fallback_markets"):
        for path, named in _workload_lists(read, key):
            for market in named:
                if isinstance(market, str) and market not in configured:
                    sentence = f"there is no market {problems.shown(market)}; {problems.nearest(market, configured)}"
                    yield read.problem(path, "unknown_market", sentence)


def unfit_old_names(read: source.Source) -> Iterator[problems.Problem]:
    """Yield the old names in `was` that another workload has too: cost and running time would count for both."""
    workloads = read.values.get("workloads")
    tables = workloads if isinstance(workloads, dict) else {}
    given: dict[str, str] = {}
    for path, old in _workload_texts(read, "was"):
        name = path[1]
        if old in tables:
            whose = "this workload" if old == name else "another workload of this file"
            sentence = f"{problems.shown(old)} is the name of {whose}; remove `was`"
            kept = "" if old == name else f". What {old} has cost and run then counts for [workloads.{old}] alone"
            yield read.problem(path, "conflict", sentence + kept)
        elif old in given:
            sentence = f"{problems.shown(old)} is the old name of [workloads.{given[old]}] too; keep one of the two"
            yield read.problem(path, "conflict", sentence)
        given.setdefault(old, name)


def unfit_predecessors(read: source.Source) -> Iterator[problems.Problem]:
    """Yield the names in `after` that are no batch of this file, and the circles."""
    workloads = read.values.get("workloads")
    tables = workloads if isinstance(workloads, dict) else {}
    after = {path[1]: [str(each) for each in named] for path, named in _workload_lists(read, "after")}
    for name, named in after.items():
        path = ("workloads", name, "after")
        for other in named:
            if other not in tables:
                sentence = f"there is no workload {problems.shown(other)}; {problems.nearest(other, tables)}"
                yield read.problem(path, "unknown_workload", sentence)
            elif (text_at(tables, other, "kind") or "service") == "service":
                sentence = f"{problems.shown(other)} is a service, which is never done; name a batch"
                yield read.problem(path, "never_done", sentence)
        if (circle := _circle(name, after)) is not None:
            yield read.problem(path, "circle", f"waits for itself: {' after '.join(circle)}; remove one of these names")


def _circle(name: str, after: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Return the shortest way from a workload back to itself by what it comes after, or None."""
    ways, seen = [[name]], {name}
    while ways:
        way = ways.pop(0)
        for other in after.get(way[-1], ()):
            if other == name:
                return [*way, name]
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return None


def no_card(model: GpuModel, priced: Collection[str] = ()) -> str | None:
    """Return the message for a GPU model that gpubid does not know; None for a known one.

    Known are the cards of gpubid's own list, those of one market only, and the `priced` ones.
    """
    own = (card for record in registered_markets.installed().values() for card in record.own_cards)
    known = {*card_memory.GIGABYTES, *own, *priced}
    if model in known:
        return None
    return f"gpubid knows no card {problems.shown(model)}; {problems.nearest(model, known)}"
