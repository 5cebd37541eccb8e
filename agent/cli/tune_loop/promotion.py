"""The promotion of a tuned strategy. From then on it decides for its workload."""

from collections.abc import Mapping
from typing import Any

from agent.cli.shared import own_strategies
from agent.cli.tune_loop import shadow_edit, shadow_trial
from agent.cli.tune_loop.loop import Loop, Refusal, hours, now


def promote(loop: Loop, done: Mapping[str, Any]) -> None:
    """Let the strategy decide for the workload, if its day on paper cost no more than the live one."""
    work = done["shadow"]["workload"]
    if loop.workload not in {None, work}:
        raise ValueError(
            f"{loop.name} is in the shadow of {work}; write gpubid tune {loop.name} --workload {work} --promote"
        )
    before, numbers = loop.records.read("promoted"), own_strategies.of_path(str(loop.file)).digest
    if before is not None and (before["numbers"], before["workload"]) == (numbers, work):
        loop.say("promoted", f"done {before['at'][:16]}; load it with `gpubid reload`")
        return
    if before is not None:
        what = f"with other numbers than those of {loop.file}, or for another workload than {work}"
        loop.say("promoted", f"{before['workload']} was promoted {before['at'][:16]} {what}")
    if not loop.is_forced:
        _refuse(loop, done)
    changed = shadow_edit.promote(loop.config, work, loop.name)
    loop.records.write(
        "promoted", now(),
        {"data": done["data"]["digest"], "seed": done["data"]["seed"], "numbers": numbers,
         "workload": work, "is_forced": loop.is_forced, "changed": [str(file) for file in changed]},
    )  # fmt: skip
    loop.say("promoted", f"{work} runs on {loop.name} once you load it: gpubid reload")


def _refuse(loop: Loop, done: Mapping[str, Any]) -> None:
    day = done.get("day")
    if day is None:
        span = f"{hours(loop.after):g} h"
        raise Refusal(f"{loop.name} has not been in the shadow for {span}; wait, or overrule with --force")
    if own_strategies.of_path(str(loop.file)).digest != done["file"]["numbers"]:
        raise Refusal(f"{loop.file} was changed since it was tuned; begin again with --again, or use --force")
    paper, live = (day["result"][side]["dollars_per_useful_hour"] for side in ("paper", "live"))
    if paper is None or (live is not None and paper > live):
        figures = shadow_trial.beside(day["result"])
        raise Refusal(f"on paper it was no better: {figures}; keep it in the shadow, or use --force")
