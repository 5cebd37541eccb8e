"""The problems of `gpubid lab bench`, by name: how each is built from the options."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.cli.lab.options import Options

if TYPE_CHECKING:
    from agent.lab.bench import Problem


def _deadline(options: Options) -> "Problem":
    from agent.lab.deadline import problem, ticks, window

    return problem.DeadlineProblem(
        folder=options.folder(),
        hours=options.window_hours,
        stride_hours=options.stride_hours,
        settings=tuple(
            ticks.Setting.of_hours(options.job_hours, allowed, overhead)
            for allowed in options.deadline_hours
            for overhead in options.overhead_hours
        ),
        prices=window.Prices(options.spot_price, options.on_demand_price),
    )


def _deadline_pools(options: Options) -> "Problem":
    from agent.lab.pools import cut, problem

    return problem.PoolsProblem(
        folder=options.folder(),
        sets=options.sets(),
        jobs=tuple(
            cut.Job(
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
        windows=cut.Windows(options.window_hours, options.stride_hours, options.spot_price, options.on_demand_price),
    )


PROBLEMS: dict[str, Callable[[Options], "Problem"]] = {"deadline": _deadline, "deadline-pools": _deadline_pools}
