"""Every run of the project and every machine, page by page, or nothing.

All are listed, because the server's list of active ones lacks those that it still provisions or ends. A machine's
record does not name its run, so the event of its creation is requested, once. The server deletes events after 30 days,
unless it is told otherwise. Then the run is the one whose record names the same host. The server may place a run on the
machine of an earlier one that has just ended. Then both runs name the same machine by the cloud's own id of it.

Most listings leave out what cannot matter any more (`horizon.py`).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec
import structlog

from agent.markets import market_errors, tolerant_rows
from agent.markets.dstack import client, names, rows
from agent.markets.dstack.endings import TERMINATED
from agent.markets.dstack.horizon import Horizon

log = structlog.get_logger(__name__)

MOST_PAGES = 400
"""Pages after which a listing counts as endless."""
MANY_RUNS = 10_000
"""Runs of which a whole listing takes most of the calls of a minute."""
NEW_PROJECT = "once nothing of gpubid runs in this project, use a new one, after `gpubid ledger unbind dstack`"
_Row = TypeVar("_Row", rows.Run, rows.Machine)
_JOB = "job"
_INSTANCE = "instance"
_FIRST_JOB = "-0-0"


_Place = tuple[str, str, str]
"""A cloud, a region, and the cloud's id of a machine, or its host."""


class Listed(msgspec.Struct, frozen=True):
    """The runs of a project, the machines of each by the run's name, and the machines whose run is not known.

    Older runs that cannot matter any more may be missing.
    """

    runs: tuple[rows.Run, ...]
    machines: Mapping[str, Sequence[rows.Machine]]
    without_run: tuple[rows.Machine, ...] = ()


class Listing:
    """Reads all pages, and remembers for which run each machine was made."""

    def __init__(self, endpoints: client.DstackClient, fleet: str) -> None:
        self._client = endpoints
        self._fleet = fleet
        self._horizon = Horizon()
        self._listed: frozenset[str] = frozenset()
        """The runs of the last listing, by id."""
        self._run_of: dict[str, str] = {}
        self._machine_at: dict[_Place, str] = {}
        """The machines by their places at their clouds, as the runs name those for which they were made."""

    async def everything(self) -> Listed:
        """Return all runs and machines that may matter, the oldest first.

        Raises:
            Malformed: a body is no page, a row is listed twice with a difference, or the pages do not end.
        """
        since = self._horizon.since
        found = await self._machines(since)
        # The server leaves out a run that it cannot read, so a short page of runs is not the last one: an empty one is.
        runs = await _pages(self._client.runs, rows.runs, _after_run, 1, "runs", since)
        runs.reverse()
        mattering = [run for run in runs if not run.deleted]
        machines = self._of_fleets(found, mattering)
        if since is None:
            self._run_of = {machine.id: self._run_of[machine.id] for machine in found if machine.id in self._run_of}
            _warn(len(runs))
        await self._learn(machines, mattering)
        at_host = by_host(mattering)
        for machine in machines:
            if machine.id not in self._run_of and (name := run_at_host(machine, at_host)):
                self._run_of[machine.id] = name
        self._learn_places(runs, machines)
        return self._joined(tuple(runs), machines)

    def note(self, listed: Listed, mattering: Iterable[rows.Run]) -> None:
        """Note which runs of a listing mattered: the next listing must go back to them, and to machines still there."""
        runs = list(mattering)
        of_runs = [machine for run in runs for machine in listed.machines.get(run.name, ())]
        there = (machine for machine in _all_machines(listed) if machine.status != TERMINATED)
        stamps = [*(run.submitted_at for run in runs), *(machine.created for machine in (*of_runs, *there))]
        newest = [run.submitted_at for run in listed.runs[-1:]]
        self._horizon.note([*stamps, *newest])
        self._listed = frozenset(run.id for run in listed.runs)

    async def of_run(self, run: rows.Run) -> Listed:
        """Return one run with its machines. If the last listing wrongly left it out, the next one is whole."""
        if run.id not in self._listed and not run.deleted:
            self._horizon.forget()
        machines = self._of_fleets(await self._machines(self._horizon.since), [run])
        await self._learn(machines, [run])
        own = [one for one in machines if self._run_of.get(one.id) == run.name or one.id == self._machine_of(run)]
        return self._joined((run,), own)

    async def _machines(self, since: datetime | None) -> list[rows.Machine]:
        """Return the machines of all fleets, the oldest first."""
        ask, size = self._client.machines, client.PAGE_MACHINES
        return (await _pages(ask, rows.machines, _after_machine, size, "machines", since))[::-1]

    def _of_fleets(self, machines: Iterable[rows.Machine], runs: Iterable[rows.Run]) -> list[rows.Machine]:
        """Return the machines of our fleet, and of an earlier one in which runs of ours may still be.

        If no fleet is named, as in a kill by label, return all.
        """
        orders = (run.run_spec.configuration for run in runs if names.is_ours(run))
        fleets = {self._fleet}.union(*(order.fleet_names for order in orders))
        return [machine for machine in machines if not self._fleet or machine.fleet_name in fleets]

    def _joined(self, runs: tuple[rows.Run, ...], machines: Iterable[rows.Machine]) -> Listed:
        listed = {machine.id: machine for machine in machines}
        by_run: dict[str, list[rows.Machine]] = {run.name: [] for run in runs}
        without = []
        for machine in listed.values():
            name = self._run_of.get(machine.id, "")
            if name in by_run:
                by_run[name].append(machine)
            elif self._fleet in {"", machine.fleet_name}:
                without.append(machine)
        for run in runs:
            machine_id = self._machine_of(run)
            if machine_id in listed and not by_run[run.name]:
                # The machine of an earlier run counts for both, until the read-back has refused this one.
                by_run[run.name].append(listed[machine_id])
        return Listed(runs, by_run, tuple(without))

    def _machine_of(self, run: rows.Run) -> str:
        """Return the id of the machine at the place that a run names; empty if no run is known to have made it."""
        place = _place(run)
        return self._machine_at.get(place, "") if place is not None else ""

    def _learn_places(self, runs: Iterable[rows.Run], machines: Iterable[rows.Machine]) -> None:
        """Note by the cloud's id where each machine is, from the run for which it was made."""
        listed = {machine.id for machine in machines}
        made = {self._run_of[each]: each for each in listed if each in self._run_of}
        self._machine_at = {place: each for place, each in self._machine_at.items() if each in listed}
        for run in runs:
            place = _place(run)
            if place is not None and run.name in made:
                self._machine_at[place] = made[run.name]

    async def _learn(self, machines: Iterable[rows.Machine], runs: Iterable[rows.Run]) -> None:
        """Request the events of machines whose run is not known yet; a machine without a run is requested again.

        A machine that ended before the oldest listed run was submitted belongs to no listed run.
        """
        listed = {machine.id: machine for machine in machines}
        oldest = min((run.submitted_at or "" for run in runs), default="~")
        matters = [one for one in listed.values() if one.status != TERMINATED or (one.created or "~") >= oldest]
        unknown = [one.id for one in matters if one.id not in self._run_of]
        for first in range(0, len(unknown), client.EVENTS_OF):
            for event in rows.events(await self._client.events(unknown[first : first + client.EVENTS_OF])):
                jobs = [one.name for one in event.targets if one.type == _JOB and one.name.endswith(_FIRST_JOB)]
                for machine in (one.id for one in event.targets if one.type == _INSTANCE and jobs):
                    self._run_of.setdefault(machine, jobs[0].removesuffix(_FIRST_JOB))


def by_host(runs: Iterable[rows.Run]) -> Mapping[_Place, Sequence[rows.Run]]:
    """Return runs by the host on which each was placed."""
    found: dict[_Place, list[rows.Run]] = {}
    for run in runs:
        got = _provisioned(run)
        if got is not None and got.backend and got.hostname:
            found.setdefault((got.backend, got.region or "", got.hostname), []).append(run)
    return found


def run_at_host(machine: rows.Machine, at_host: Mapping[_Place, Sequence[rows.Run]]) -> str | None:
    """Return the name of the run for which a machine was made: the last one at its host that was submitted before it.

    A cloud may give the host of an earlier machine to a later one, so a run that came after a machine is not its.
    """
    place = machine.backend or "", machine.region or "", machine.hostname or ""
    before = [run for run in at_host.get(place, ()) if (run.submitted_at or "~") <= (machine.created or "")]
    return max(before, key=lambda run: run.submitted_at or "").name if before else None


def _warn(runs: int) -> None:
    """Say early that a project has so many runs that its listing takes too long."""
    if runs >= MANY_RUNS:
        log.warning("listing.long", market="dstack", runs=runs, reason=f"the server keeps every run: {NEW_PROJECT}")


def _all_machines(listed: Listed) -> Iterable[rows.Machine]:
    yield from (machine for machines in listed.machines.values() for machine in machines)
    yield from listed.without_run


def _place(run: rows.Run) -> _Place | None:
    """Return where the machine of a run is, by the cloud's id; None if the run has no machine yet."""
    got = _provisioned(run)
    if got is None or not got.instance_id or not got.backend:
        return None
    return got.backend, got.region or "", got.instance_id


def _provisioned(run: rows.Run) -> rows.Provisioned | None:
    return run.latest_job_submission.job_provisioning_data if run.latest_job_submission is not None else None


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
    since: datetime | None,
) -> list[_Row]:
    """Return the rows of all pages, or of those that go back to an instant; the last page has less than `size` rows."""
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
        last = tolerant_rows.moment(next(iter(place.values())))
        if since is not None and last is not None and last < since:
            return list(found.values())
        if len(found) == known or not all(place.values()):
            raise market_errors.Malformed(f"dstack's listing of {what} repeats a page; it is refused.")
    raise market_errors.Malformed(f"dstack's listing of {what} has more than {MOST_PAGES} pages: {NEW_PROJECT}.")
