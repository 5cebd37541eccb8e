"""The problems of `gpubid lab bench` by name, with the function that builds each from the options."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.cli.lab.options import Options, span

if TYPE_CHECKING:
    from pathlib import Path

    from agent.domain.work.workload import Workload
    from agent.lab.bench.comparison import Problem

DEADLINE_WINDOW_HOURS = 70.0
AVAILABILITY_WINDOW_HOURS = 24.0


def _deadline(options: Options) -> "Problem":
    from agent.lab.deadline import deadline_jobs, deadline_problem
    from agent.lab.jobs import trace_windows

    return deadline_problem.DeadlineProblem(
        folder=options.folder(),
        hours=options.window_hours or DEADLINE_WINDOW_HOURS,
        stride_hours=options.stride_hours,
        settings=tuple(
            deadline_jobs.Setting.of_hours(options.job_hours, allowed, overhead)
            for allowed in options.deadline_hours
            for overhead in options.overhead_hours
        ),
        prices=trace_windows.Prices(options.spot_price, options.on_demand_price),
        cross_fit=options.cross_fit,
        split=options.split,
    )


def _deadline_pools(options: Options) -> "Problem":
    from agent.lab.pools import pools_jobs, pools_problem

    return pools_problem.PoolsProblem(
        folder=options.folder(),
        sets=options.sets(),
        jobs=tuple(
            pools_jobs.Job(
                work=options.job_hours,
                allowed=allowed,
                overhead=overhead,
                instances=options.instances,
                gigabytes=options.checkpoint_gb,
                egress_price=options.egress_price,
            )
            for allowed in options.deadline_hours
            for overhead in options.overhead_hours
        ),
        windows=pools_jobs.Windows(
            options.window_hours or DEADLINE_WINDOW_HOURS,
            options.stride_hours,
            options.spot_price,
            options.on_demand_price,
        ),
        split=options.split,
    )


def _availability(options: Options) -> "Problem":
    from agent.cli.lab import extra
    from agent.lab.availability import availability_problem, span

    extra.need("scipy")
    setting = span.Setting(
        slots=options.slots,
        cold_start_seconds=options.cold_start_seconds,
        on_demand_multiple=options.on_demand_multiple,
        target=options.target,
        spot_price=options.spot_price,
        most_in_pool=options.most_in_pool,
    )
    hours = options.window_hours or AVAILABILITY_WINDOW_HOURS
    return availability_problem.AvailabilityProblem(
        options.folder(), hours, options.stride_hours, setting, split=options.split
    )


def _bids(options: Options) -> "Problem":
    from agent.cli.shared import exits
    from agent.lab.bench import split
    from agent.lab.bids import lab_markets
    from agent.simulator import climate_files

    climates = tuple(dict.fromkeys(name.strip() for name in options.climates.split(",") if name.strip()))
    # The market in memory runs no processes.
    known = [name for name in climate_files.names() if not climate_files.named(name).processes]
    unknown = sorted(set(climates) - set(known)) if climates else ["climate named"]
    if unknown:
        exits.stop(exits.BAD_INPUT, [f"--climates: no {', '.join(unknown)}; known: {', '.join(known)}"])
    markets = lab_markets.known()
    market = lab_markets.OF_HOSTS if options.market is None else options.market
    if market not in markets:
        sentence = f"--market: the lab has no auction of {market}; known: {', '.join(sorted(markets))}"
        exits.stop(exits.BAD_INPUT, [sentence])
    work = None if options.workload is None else _workload(options.config, options.workload)
    days = split.half_of_seeds(span("--seeds", options.seeds), options.split)
    if not days:
        exits.stop(exits.BAD_INPUT, ["--seeds: one seed has no halves; name two or more, or leave --split out"])
    shares = _shares(options.values)
    asked = lab_markets.Days(climates, days, options.hours, options.poll_seconds, work, shares)
    return markets[market].problem(asked)


def _shares(text: str | None) -> tuple[float, ...]:
    """Return the values of an hour, as shares of on-demand, or end with what to write."""
    from agent.cli.shared import exits
    from agent.config import value_kinds

    try:
        shares = tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        shares = (0.0,)
    if not all(0 < share <= value_kinds.MOST_SHARE for share in shares):
        exits.stop(exits.BAD_INPUT, [f'--values: {text!r} are not shares of on-demand; write for example "0.5,1,2"'])
    return shares


def _recorded(options: Options) -> "Problem":
    from agent.cli.shared import exits, own_strategies, session
    from agent.lab.recorded import recorded_problem
    from agent.ledger.ledger_errors import LedgerError

    settings = session.read(own_strategies.configuration(options.config))[0]
    work = _workload(options.config, options.workload or settings.workloads[0].name)
    if settings.ledger_server is not None and options.ledger is None:
        exits.stop(exits.BAD_INPUT, ["--ledger: the ledger is on a server, and a bench reads a file; name one"])
    problem = recorded_problem.RecordedProblem(
        options.ledger or settings.ledger, work, settings.limits, options.hours, split=options.split
    )
    try:
        problem.cases()
    except LedgerError as error:
        exits.refused(error)
    return problem


def _workload(config: "Path | None", name: str) -> "Workload":
    """Return a workload of a configuration, or end with the known ones."""
    from agent.cli.shared import exits, own_strategies, session

    works = {work.name: work for work in session.read(own_strategies.configuration(config))[0].workloads}
    if name not in works:
        exits.stop(exits.BAD_INPUT, [f"--workload: there is no workload {name!r}; known: {', '.join(sorted(works))}"])
    return works[name]


PROBLEMS: dict[str, Callable[[Options], "Problem"]] = {
    "deadline": _deadline,
    "deadline-pools": _deadline_pools,
    "availability": _availability,
    "bids": _bids,
    "recorded": _recorded,
}
