"""One run of a deadline told tick by tick, for a picture."""

from agent.domain.market.tenure import Tenure
from agent.lab.deadline import deadline_ticks, single_pool_optimum
from agent.lab.deadline.deadline_ticks import Rule, Setting, Standing
from agent.lab.deadline.window import Window
from agent.lab.engine.run_timeline import Lane


def lane(strategy: str, rule: Rule, window: Window, setting: Setting) -> Lane:
    """Return what became of a job under a rule."""
    done: list[float] = []

    def told(at: Standing) -> Tenure | None:
        done.append(at.done / 3600)
        return rule(at)

    lived = deadline_ticks.run(told, window, setting)
    ended = setting.work / 3600 if lived.finished is not None else done[-1]
    return Lane(strategy, lived.tenures, (*done, ended), lived.dollars)


def bound(strategy: str, window: Window, setting: Setting) -> Lane | None:
    """Return what the exact optimum holds, or nothing where the job cannot be done in time."""
    held = single_pool_optimum.choices(window, setting)
    if held is None:
        return None
    return lane(strategy, lambda at: held[at.tick] if at.tick < len(held) else None, window, setting)
