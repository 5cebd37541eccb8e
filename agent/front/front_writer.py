"""Keeps each proxy equal to the leases of its service, beside the cycles.

Invariants:
1. No cycle waits for a proxy: it is written beside them, one request a front at a time, each with a deadline.
2. The servers are read before each change, so that the proxy and the daemon may restart at any time.
3. A proxy that does not answer is unknown: no lease is touched for it, and no ending waits for it.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import structlog

from agent import background_tasks
from agent.clock import Clock
from agent.config.front_settings import Front
from agent.decide.facts import Alert
from agent.decide.operators.notices import Notice
from agent.domain import front_report
from agent.domain.front_report import FrontReport
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.work.workload import Workload
from agent.front import haproxy_commands, haproxy_socket, haproxy_state, proxy_formats
from agent.front.haproxy_socket import ProxyUnreachableError
from agent.front.haproxy_state import Server, UnreadableStateError
from agent.front.served_leases import ServedLease, served_leases

log = structlog.get_logger("gpubid.front")

LASTING = timedelta(minutes=2)
"""How long trouble lasts before it is an alert: a reload of the proxy, or a new lease, takes some seconds."""
FrontReports = Mapping[str, FrontReport]
"""By lease id."""
Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


@dataclass(frozen=True, slots=True)
class FrontStatus:
    """A front as last seen."""

    name: str
    workload: str
    wanted: int = 0
    """The number of useful leases."""
    up: int = 0
    """The number of servers that get requests by the proxy's own health check."""
    draining: int = 0
    """The number of servers that finish their present requests."""
    trouble: str = ""
    """Why nothing is known of the proxy, or which leases get no request."""
    since: datetime | None = None
    """When its trouble began; None without trouble."""


class FrontWriter:
    """Writes to all fronts."""

    def __init__(self, clock: Clock, spawn: Spawn, local_markets: Collection[str]) -> None:
        """Start tasks with `spawn`; only instances of the markets `local_markets` may be on this machine."""
        self._clock = clock
        self._spawn = spawn
        self._local_markets = local_markets
        self._running: dict[str, asyncio.Task[None]] = {}
        self._read: dict[str, FrontReports] = {}
        self._asked: dict[str, datetime] = {}
        self._files: dict[Path, str] = {}
        self.statuses: dict[str, FrontStatus] = {}
        self.reports: FrontReports = {}
        """The proxies' last report of each lease's server, by lease. The mapping is replaced at every change."""

    def see(
        self, fronts: Iterable[Front], leases: Iterable[Lease], workloads: Iterable[Workload], drained: Iterable[Lease]
    ) -> None:
        """Begin to make the proxies equal to the leases; those in `drained` get no new request."""
        known = {front.name: front for front in fronts}
        works, leases = {work.name: work for work in workloads}, tuple(leases)
        slots = {lease.lease_id: lease.slot for lease in drained}
        self._asked = {lease: at for lease, at in self._asked.items() if lease in slots}
        self._keep({name: read for name, read in self._read.items() if name in known})
        self.statuses = {name: status for name, status in self.statuses.items() if name in known}
        self._running = {name: task for name, task in self._running.items() if not task.done()}
        for name, front in known.items():
            work = works.get(front.workload)
            if work is not None and name not in self._running:
                wanted = served_leases(leases, work, front.port, set(slots), may_be_local=self._local_markets)
                self._running[name] = self._spawn(self._write(front, wanted, self._asked_with(work, slots)))

    def _asked_with(self, work: Workload, slots: Mapping[str, Slot]) -> Mapping[str, datetime]:
        """Return since when the leases of a service are asked to be drained: from now on those that were not before.

        A write that began earlier asked nothing, so its report must not count as one of the drain.
        """
        mine = [lease for lease, slot in slots.items() if slot.workload == work.name]
        self._asked |= {lease: self._clock.now() for lease in mine if lease not in self._asked}
        return dict(self._asked)

    async def settle(self) -> None:
        """Wait for the requests under way."""
        await background_tasks.settle(self._running)

    async def close(self) -> None:
        """End every request."""
        await background_tasks.end(self._running)

    async def _write(self, front: Front, wanted: Sequence[ServedLease], asked: Mapping[str, datetime]) -> None:
        try:
            if front.haproxy is not None:
                await self._to_haproxy(front, front.haproxy, wanted, asked)
            elif front.file is not None:
                self._to_file(front, front.file, wanted)
        except (ProxyUnreachableError, UnreadableStateError, OSError) as error:
            self._keep({name: read for name, read in self._read.items() if name != front.name})
            self._note(FrontStatus(front.name, front.workload, len(wanted), trouble=str(error)))

    async def _to_haproxy(
        self, front: Front, path: Path, wanted: Sequence[ServedLease], asked: Mapping[str, datetime]
    ) -> None:
        shown = await self._servers(front, path)
        changes = haproxy_commands.changes(shown, wanted, front.backend)
        if changes.commands:
            await haproxy_socket.order(path, changes.commands)
            log.info("front.changed", front=front.name, commands=len(changes.commands))
            shown = await self._servers(front, path)
        at = self._clock.now()
        by_place = {server.place: server for server in shown if not server.is_off}
        of_leases = {each.lease_id: by_place[each.place] for each in wanted if each.place in by_place}
        read = {
            lease: FrontReport(at, server.is_drained, server.sessions, asked.get(lease))
            for lease, server in of_leases.items()
        }
        self._keep({**self._read, front.name: read})
        self._note(_status(front, wanted, of_leases.values(), changes.unplaced))

    async def _servers(self, front: Front, path: Path) -> tuple[Server, ...]:
        answer = await haproxy_socket.ask(path, haproxy_state.question(front.backend))
        return haproxy_state.servers(answer, front.backend)

    def _to_file(self, front: Front, path: Path, wanted: Sequence[ServedLease]) -> None:
        content = proxy_formats.written(front.name, wanted, front.format)
        if self._files.get(path) != content or not path.exists():
            beside = path.with_name(f".{path.name}.gpubid")
            beside.write_text(content)
            # A proxy that watches the file reads the old list or the new one, never half of it.
            beside.replace(path)
            self._files[path] = content
            log.info("front.changed", front=front.name, commands=0)
        self._note(FrontStatus(front.name, front.workload, len(wanted)))

    def _keep(self, read: dict[str, FrontReports]) -> None:
        if read != self._read:
            self._read = read
            leases = {lease for reports in read.values() for lease in reports}
            self.reports = {
                lease: front_report.together([reports[lease] for reports in read.values() if lease in reports])
                for lease in leases
            }

    def alerts(self) -> tuple[Alert, ...]:
        """Return an alert for each front whose trouble lasts."""
        oldest = self._clock.now() - LASTING
        lasting = (each for each in self.statuses.values() if each.since is not None and each.since <= oldest)
        return tuple(Alert(EventKind.ALERT_FRONT, each.name, _sentence(each)) for each in lasting)

    def notices(self) -> tuple[Notice, ...]:
        """Return a notice for each front with trouble."""
        troubled = (each for each in self.statuses.values() if each.trouble)
        return tuple(Notice(f"front {each.name}", "front", _sentence(each)) for each in troubled)

    def _note(self, status: FrontStatus) -> None:
        before = self.statuses.get(status.name)
        if status.trouble:
            since = before.since if before is not None and before.since is not None else self._clock.now()
            status = replace(status, since=since)
            if before is None or before.trouble != status.trouble:
                log.warning("front.unwritten", front=status.name, reason=status.trouble)
        self.statuses[status.name] = status


def _sentence(status: FrontStatus) -> str:
    return f"the proxy in front of {status.workload}: {status.trouble}; no lease is touched for it"


def _status(
    front: Front, wanted: Sequence[ServedLease], servers: Iterable[Server], unplaced: Sequence[ServedLease]
) -> FrontStatus:
    shown = tuple(servers)
    up, draining = sum(each.is_up for each in shown), sum(each.is_drained for each in shown)
    trouble = ""
    if unplaced:
        trouble = (
            f"backend {front.backend} has no server left for {len(unplaced)} of {len(wanted)} leases; "
            f"raise the number in its server-template and reload HAProxy"
        )
    elif wanted and up == draining == 0:
        trouble = f"backend {front.backend} says that none of {len(wanted)} leases is well; see its option httpchk"
    return FrontStatus(front.name, front.workload, len(wanted), up, draining, trouble)
