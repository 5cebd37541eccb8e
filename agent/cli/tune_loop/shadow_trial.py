"""The trial of a tuned strategy in a workload's shadow: it decides on paper beside the live strategy, without spend."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent.cli.shared import ledger_access, session
from agent.cli.tune_loop import shadow_edit
from agent.cli.tune_loop.loop import Loop, hours, now, workload_of, workloads_of


def begin(loop: Loop, done: Mapping[str, Any]) -> dict[str, Any]:
    """Put the strategy in the shadow of a workload: it decides on paper beside the live one, and spends nothing."""
    if not loop.config.exists():
        raise ValueError(f"there is no {loop.config}; write one with `gpubid init`, and run this again")
    work = done["data"]["asked"].get("workload") or workload_of(loop)
    if work not in workloads_of(loop):
        raise ValueError(f"{loop.config} has no workload {work} any more; begin again with --again")
    changed = shadow_edit.put_in_shadow(loop.config, work, loop.name, loop.directory)
    record = loop.records.write(
        "shadow", now(),
        {"data": done["data"]["digest"], "seed": done["data"]["seed"], "workload": work,
         "numbers": done["file"]["numbers"], "changed": [str(file) for file in changed]},
    )  # fmt: skip
    loop.say("shadow", f"{loop.name} is in the shadow of {work} in {', '.join(map(str, changed)) or loop.config}")
    return record


def day(loop: Loop, done: Mapping[str, Any]) -> dict[str, Any] | None:
    """Show the strategy's cost in the shadow. Record it once the strategy was there long enough."""
    before = loop.records.read("day")
    if before is not None and before["numbers"] != done["file"]["numbers"]:
        before = None
    work = done["shadow"]["workload"]
    row = _shadowed(loop, work)
    if row is None:
        what = "load it with `gpubid reload`, or start `gpubid run`; run this again after a day"
        loop.say("day", f"{loop.name} has not decided yet; {what}")
        return before
    if row["digest"] != done["file"]["numbers"]:
        what = "load these with `gpubid reload`, and run this again after a day"
        loop.say("day", f"{loop.name} is in the shadow of {work} with other numbers, since {row['since'][:16]}; {what}")
        return None
    span = datetime.fromisoformat(row["seen_at"]) - datetime.fromisoformat(row["since"])
    loop.say("day", f"{hours(span):.1f} h in the shadow: {beside(row)}")
    if span < loop.after:
        loop.say("day", f"it may be promoted after {hours(loop.after):g} h; run this again then")
        return before
    record = loop.records.write(
        "day", now(),
        {"data": done["data"]["digest"], "seed": done["data"]["seed"], "numbers": done["file"]["numbers"],
         "hours": hours(span), "result": row},
    )  # fmt: skip
    if loop.records.read("promoted") is None:
        loop.say("day", f"written to {loop.records.file('day')}; next: gpubid tune {loop.name} --promote")
    return record


def _shadowed(loop: Loop, work: str) -> dict[str, Any] | None:
    """Return the account of the strategy in a workload's shadow, or None while there is none."""
    from agent.cli.watch import shadow
    from agent.config.settings import Config

    settings: Config = session.read(loop.config)[0]
    if ledger_access.is_missing(settings):
        return None
    answer = shadow.shadows(loop.config, work)
    return next((row for row in answer["shadows"] if row["strategy"] == loop.name), None)


def beside(row: Mapping[str, Any]) -> str:
    """Return the strategy's cost on paper, beside the cost of the live strategy in the same time."""
    sides = []
    for name, figures in (("on paper", row["paper"]), ("live", row["live"])):
        each = figures["dollars_per_useful_hour"]
        per = "no useful hour" if each is None else f"${each:.4f} per useful hour"
        sides.append(f"{name} ${figures['dollars']:.4f}, {figures['useful_hours']:.1f} useful h, {per}")
    return "; ".join(sides)
