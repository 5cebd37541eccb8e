"""The rows of `gpubid top`: a slot each, but the empty slots of an array or a demand share one for each reason.

1. A row of several slots names no slot to order anything for: each order is for one slot, or for one lease.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Row = Sequence[Mapping[str, Any]]
"""The slots that share a row, in their order."""


def of(fleet: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a fleet, each where its first slot is."""
    many = {each["workload"] for kind in ("arrays", "demands") for each in fleet.get(kind, ())}
    rows: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for number, slot in enumerate(fleet["slots"]):
        name, decision = workload(slot), slot["decision"]
        is_shared = name in many and not slot["lease"]
        code = decision["code"] if decision else ""
        rows.setdefault((name, code, slot["state"]) if is_shared else (str(number),), []).append(slot)
    return list(rows.values())


def workload(slot: Mapping[str, Any]) -> str:
    """Return the workload of a slot."""
    return str(slot["slot"]).partition("/")[0]


def numbers(row: Row) -> str:
    """Return the numbers of the slots of a row, such as `0-3, 7`."""
    found: list[list[int]] = []
    for number in sorted(int(str(slot["slot"]).rpartition("/")[2]) for slot in row):
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ", ".join("-".join(map(str, each)) for each in found)
