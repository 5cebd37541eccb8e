"""Every run of the project and every machine, page by page, or nothing.

All are listed, because the server's list of active ones lacks those that it still provisions or ends. A machine's
record does not name its run, so the event of its creation is requested, once.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from agent.markets import market_errors
from agent.markets.dstack import client, rows
from agent.markets.dstack.endings import TERMINATED

MOST_PAGES = 400
"""Pages after which a listing counts as endless."""
_Row = TypeVar("_Row", rows.Run, rows.Machine)
_JOB = "job"
_INSTANCE = "instance"
_FIRST_JOB = "-0-0"


class Listed(msgspec.Struct, frozen=True):
    """The runs of a project, the machines of each by the run's name, and the machines whose run is not known."""

    runs: tuple[rows.Run, ...]
    machines: Mapping[str, Sequence[rows.Machine]]
    without_run: tuple[rows.Machine, ...] = ()


class Listing:
    """Reads all pages, and remembers for which run each machine was made."""

    def __init__(self, endpoints: client.DstackClient, fleet: str) -> None:
        self._client = endpoints
        self._fleet = fleet
        self._run_of: dict[str, str] = {}

    async def everything(self) -> Listed:
        """Return all runs and machines, the oldest first.

        Raises:
            Malformed: a body is no page, a row is listed twice with a difference, or the pages do not end.
        """
        machines = await self._machines()
        runs = await _pages(self._client.runs, rows.runs, _after_run, client.PAGE_RUNS, "runs")
        runs.reverse()
        await self._learn(machines, [run for run in runs if not run.deleted])
        return self._joined(tuple(runs), machines)

    async def of_run(self, run: rows.Run) -> Listed:
        """Return one run with its machines."""
        machines = await self._machines()
        await self._learn(machines, [run])
        return self._joined((run,), (one for one in machines if self._run_of.get(one.id) == run.name))

    async def _machines(self) -> list[rows.Machine]:
        """Return the machines of our fleet, the oldest first; of all fleets if none is named, as in a kill by label."""
        found = await _pages(self._client.machines, rows.machines, _after_machine, client.PAGE_MACHINES, "machines")
        return [machine for machine in reversed(found) if self._fleet in {"", machine.fleet_name}]

    def _joined(self, runs: tuple[rows.Run, ...], machines: Iterable[rows.Machine]) -> Listed:
        by_run: dict[str, list[rows.Machine]] = {}
        known = {run.name for run in runs}
        without = []
        for machine in machines:
            name = self._run_of.get(machine.id, "")
            if name in known:
                by_run.setdefault(name, []).append(machine)
            else:
                without.append(machine)
        return Listed(runs, by_run, tuple(without))

    async def _learn(self, machines: Iterable[rows.Machine], runs: Iterable[rows.Run]) -> None:
        """Request the events of machines whose run is not known yet; a machine without a run is requested again.

        A machine that ended before the oldest listed run was submitted belongs to no listed run.
        """
        listed = {machine.id: machine for machine in machines}
        self._run_of = {each: name for each, name in self._run_of.items() if each in listed}
        oldest = min((run.submitted_at or "" for run in runs), default="~")
        matters = [one for one in listed.values() if one.status != TERMINATED or (one.created or "~") >= oldest]
        unknown = [one.id for one in matters if one.id not in self._run_of]
        for first in range(0, len(unknown), client.EVENTS_OF):
            for event in rows.events(await self._client.events(unknown[first : first + client.EVENTS_OF])):
                jobs = [one.name for one in event.targets if one.type == _JOB and one.name.endswith(_FIRST_JOB)]
                for machine in (one.id for one in event.targets if one.type == _INSTANCE and jobs):
                    self._run_of.setdefault(machine, jobs[0].removesuffix(_FIRST_JOB))


def _after_run(row: rows.Run) -> Mapping[str, str]:
    return {"prev_submitted_at": row.submitted_at or "", "prev_run_id": row.id}


def _after_machine(row: rows.Machine) -> Mapping[str, str]:
    return {"prev_created_at": row.created or "", "prev_id": row.id}


async def _pages(
    ask: Callable[[Mapping[str, str]], Awaitable[bytes]],
    read: Callable[[bytes], list[_Row]],
    after: Callable[[_Row], Mapping[str, str]],
    size: int,
    what: str,
) -> list[_Row]:
    found: dict[str, _Row] = {}
    place: Mapping[str, str] = {}
    for _ in range(MOST_PAGES):
        page = read(await ask(place))
        known = len(found)
        for row in page:
            if found.setdefault(row.id, row) != row:
                raise market_errors.Malformed(f"dstack listed one of the {what} twice, with a difference.")
        if len(page) < size:
            return list(found.values())
        place = after(page[-1])
        if len(found) == known or not all(place.values()):
            raise market_errors.Malformed(f"dstack's listing of {what} repeats a page; it is refused.")
    raise market_errors.Malformed(f"dstack's listing of {what} has more than {MOST_PAGES} pages; it is refused.")
