"""The frontier of useful hours against dollars, as a table for a person."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.cli.shared import session

FEWEST = 2


def say(steps: Sequence[Mapping[str, Any]], *, is_valued: bool) -> None:
    """Print the steps with what the next dollar buys, and where the present setting is; nothing without a choice."""
    if len(steps) < FEWEST:
        return
    session.say("  useful hours against dollars, a day; each step is the best from its value on:")
    table = session.table("value from", "useful h", "$", "a dollar more buys", "way", "")
    for step in steps:
        more = step["useful_hours_per_next_dollar"]
        session.add(
            table,
            f"${step['least_value_dollars_per_hour']:.4f}/h",
            f"{step['useful_hours_per_day']:.1f}",
            f"{step['dollars_per_day']:.2f}",
            "" if more is None else f"{more:.2f} h",
            step["way"],
            "this setting" if step["is_set"] else "",
        )
    session.show(table)
    if not is_valued:
        session.say("  set value_per_hour or value of the workload to choose another row")
