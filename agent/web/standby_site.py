"""The answers of a standby, over HTTP and on the operators' socket: who leads, and that orders are given there."""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry

from agent.config.settings import Listen, Operators
from agent.ledger.leader import Leader
from agent.telemetry.health import Health
from agent.web import operator_socket
from agent.web.reading.reload_json import Reloaded
from agent.web.request_checks import middlewares, socket_rights
from agent.web.request_checks.refusal_log import Refusals
from agent.web.web_server import ListenError, Server

BY_LABEL = "`gpubid kill --by-label` ends instances from any machine, without the ledger"


@dataclass(frozen=True, slots=True)
class LastLook:
    """A standby's last look: who leads, or why that is not known.

    `unfit` is why this box could not take over, with the fix: its files would not keep a lease, or its program is older
    than the tables.
    """

    leader: Leader | None = None
    trouble: str = ""
    unfit: str = ""

    @property
    def about(self) -> str:
        """Who leads, without figures that change at each look."""
        if self.leader is None:
            return f"this daemon stands by, and no leader is seen{f': {self.trouble}' if self.trouble else ''}"
        is_late = "" if self.leader.is_shown else ", and has stopped beating"
        leads = f"{self.leader.place} leads since {self.leader.since:%Y-%m-%d %H:%M:%SZ}{is_late}"
        unfit = f"; it could not take over: {self.unfit}" if self.unfit else ""
        return f"this daemon stands by; {leads}{unfit}"

    @property
    def sentence(self) -> str:
        """Who leads, the age of the last beat, and where to give a command."""
        if self.leader is None:
            return f"{self.about}; {BY_LABEL}"
        age = f"its last beat is {self.leader.beat_age_seconds:.0f} s old"
        there = f"give the command on {self.leader.host}" if self.leader.is_shown else BY_LABEL
        return f"{self.about} ({age}); {there}"

    @property
    def since_seconds(self) -> float:
        """When the present leader began to lead, in seconds since 1970; 0 if no leader is seen."""
        return 0.0 if self.leader is None else self.leader.since.timestamp()

    @property
    def beat_seconds(self) -> float:
        """When the last beat was written, in seconds since 1970; 0 if no leader is seen."""
        return 0.0 if self.leader is None else self.leader.beat_at.timestamp()

    def as_json(self) -> dict[str, Any]:
        """Return the refusal of a call that only the leader answers."""
        return {"error": "standby", "sentence": self.sentence, "leader": leader_json(self.leader)}


def leader_json(leader: Leader | None) -> dict[str, Any] | None:
    """Return a leader as JSON; None if none is seen."""
    if leader is None:
        return None
    return {
        "host": leader.host,
        "page": leader.page,
        "epoch": leader.epoch,
        "since": leader.since.isoformat(),
        "beat_age_seconds": round(leader.beat_age_seconds, 1),
        "is_shown": leader.is_shown,
    }


def server(
    listen: Listen,
    registry: CollectorRegistry,
    health: Health,
    last_look: Callable[[], LastLook],
    monotonic: Callable[[], float],
) -> Server:
    """Return the web server of a standby. Its page is one sentence; /healthz is good, /readyz is not."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=last_look().sentence + "\n")

    routes = [web.get("/", page), web.route("*", "/{path:.*}", _refusing(last_look))]
    refusals = Refusals(monotonic)
    return Server(listen.host, listen.port, registry, health, routes, names=listen.names, refusals=refusals)


def _refusing(last_look: Callable[[], LastLook]) -> Callable[[web.Request], Any]:
    async def refused(_: web.Request) -> web.Response:
        return web.json_response(last_look().as_json(), status=503)

    return refused


class StandbySocket:
    """The operators' socket of a standby: it reloads its own files, and answers else with the leader's address."""

    def __init__(
        self,
        path: Path,
        operators: Operators,
        last_look: Callable[[], LastLook],
        reload: Callable[[], Reloaded],
        monotonic: Callable[[], float],
    ) -> None:
        self._path, self._operators, self._reload = path, operators, reload
        refusals = Refusals(monotonic)
        site = web.Application(middlewares=[middlewares.answering(refusals)])
        site.router.add_post("/reload", self._reloaded)
        site.router.add_route("*", "/{path:.*}", _refusing(last_look))
        self._runner = web.AppRunner(site, **middlewares.bounds(refusals))

    async def start(self) -> None:
        """Listen. A socket that a daemon left on this machine is replaced.

        Raises:
            ListenError: no socket can be made there.
        """
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        await self._runner.setup()
        try:
            await web.UnixSite(self._runner, self._path).start()
            socket_rights.open_to_group(self._path, self._operators.group)
        except OSError as error:
            await self._runner.cleanup()
            why = os.strerror(error.errno) if error.errno else str(error)
            raise ListenError(f"cannot listen on {self._path} ({why}); give [ledger] a shorter path") from None

    async def _reloaded(self, request: web.Request) -> web.Response:
        who = socket_rights.peer(request)
        if not socket_rights.may_order(who, self._operators.uids, may_group_order=self._operators.may_group_order):
            return operator_socket.forbidden(who)
        return web.json_response(self._reload().as_json())

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
