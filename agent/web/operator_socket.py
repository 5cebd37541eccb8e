"""The Unix socket for operators while the daemon locks the ledger. Each order has the uid of its sender.

| call | what | who |
|---|---|---|
| POST /say: {"verb", "target", "seconds", "hours", "slots", and so on}, an `Order` | who may order |
| POST /reload: read the files again, as SIGHUP does; the answer says whether they were applied | who may order |
| GET /status: problems, running slots, spend against the caps | who connects |
| GET /preview?verb&target&keep_disks&is_gone: the leases that an order would concern, with their rates | who connects |
| GET /logs?slot&lines&lease&previous: the last lines of a container, or of a kept log | who connects |
| GET /billing: the leases that still bill, and the attempts to end them | who connects |
| GET /fleet, /running, /holdings, /plan, /learned | as the verbs | who connects |
| GET /api/v1/fleet, /api/v1/events, /api/v1/openapi.json: the feed (agent/web/feed/) | who connects |
| GET /spend?by&since&until, /savings?by&since&until&baseline | as the verbs | who connects |
| GET /events?since&kind&workload&limit, /prices?since&gpu&host&limit, /explain?workload | as the verbs | who connects |
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from agent.act.orders import order_grounds, order_preview
from agent.act.orders.order_error import OrderError
from agent.config.settings import Operators
from agent.domain.market import gpu as gpus
from agent.domain.record import expiry
from agent.domain.record.intent import Intent
from agent.domain.work.order import Order
from agent.ledger.ledger_errors import LedgerError
from agent.observe import reload_review
from agent.web.daemon_port import Orders, Process
from agent.web.reading import (
    holdings,
    learned_json,
    log_answers,
    shadow_json,
    spend_reports,
    status_json,
    still_billing,
    verb_json,
)
from agent.web.request_checks import bounded_body, middlewares, socket_rights
from agent.web.request_checks.refusal_log import Refusals
from agent.web.web_server import ListenError

MOST_BODY = 64 * 1024
MOST_EVENTS = 10_000
MOST_SECONDS = expiry.LASTING.total_seconds()


def path_of(ledger: Path, runtime: Path | None = None) -> Path:
    """Return the path of a daemon's socket: in systemd's runtime directory, else beside the ledger."""
    name = ledger.name + ".sock"
    return ledger.with_name(name) if runtime is None else runtime / name


_BAD_ORDER = (
    "the daemon cannot read this order: a value is missing, or is none that an order may have; after an upgrade of "
    "gpubid restart the daemon with `systemctl restart gpubid`, then give the order again"
)


class _Said(msgspec.Struct):
    """The body of POST /say."""

    verb: str
    target: str
    seconds: float | None = None
    into: str | None = None
    hours: float | None = None
    slots: int | None = None
    keep_disks: bool = False
    leases: list[str] | None = None
    is_gone: bool = False

    def order(self) -> Order:
        """Return the order.

        Raises:
            ValueError: its time is out of range.
        """
        if self.seconds is not None and not 0 < self.seconds <= MOST_SECONDS:
            raise ValueError("seconds")
        span = timedelta(seconds=self.seconds) if self.seconds is not None else None
        leases = tuple(self.leases) if self.leases is not None else None
        told = (self.into or "", self.hours, self.slots, self.keep_disks, leases, self.is_gone)
        return Order(self.verb, self.target, span, *told)


class OperatorSocket:
    """Serves orders and reading on a socket that the daemon's user and one group may open."""

    def __init__(
        self,
        path: Path,
        orders: Orders,
        wake: Callable[[], None],
        operators: Operators | None = None,
        process: Process | None = None,
        routes: Iterable[web.RouteDef] = (),
    ) -> None:
        """Serve at `path`. `wake` starts a cycle at once. `operators` names the group that may connect.

        Without a `process` nothing can be reloaded and nothing is late. `routes` are further routes for every user who
        can connect.
        """
        self._orders = orders
        self._process = process
        self._group = (operators or Operators()).group
        self._wake = wake
        self._path = path
        refusals = Refusals(orders.clock.monotonic)
        site = web.Application(client_max_size=MOST_BODY, middlewares=[middlewares.answering(refusals)])
        site.router.add_post("/say", self._say)
        site.router.add_post("/reload", self._reload)
        site.router.add_get("/status", self._status)
        site.router.add_get("/preview", self._preview)
        site.router.add_get("/fleet", self._fleet)
        site.router.add_get("/billing", self._billing)
        site.router.add_get("/running", self._running)
        site.router.add_get("/holdings", self._holdings)
        site.router.add_get("/plan", self._plan)
        site.router.add_get("/events", self._events)
        site.router.add_get("/prices", self._prices)
        site.router.add_get("/learned", self._learned)
        site.router.add_get("/explain", self._explain)
        site.router.add_get("/shadow", self._shadow)
        site.router.add_get("/logs", self._logs)
        site.router.add_get("/spend", self._reported)
        site.router.add_get("/savings", self._reported)
        site.router.add_routes(routes)
        self._runner = web.AppRunner(site, **middlewares.bounds(refusals))

    async def start(self) -> None:
        """Listen. A socket that a crash left is replaced: the ledger's lock proves that no daemon uses it.

        Raises:
            ListenError: the path is too long for a socket, or no file can be made there.
        """
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        await self._runner.setup()
        try:
            await web.UnixSite(self._runner, self._path).start()
            socket_rights.open_to_group(self._path, self._group)
        except OSError as error:
            await self._runner.cleanup()
            why = os.strerror(error.errno) if error.errno else str(error)
            sentence = f"cannot listen on {self._path} ({why}); give [ledger] a shorter path, where files can be made"
            raise ListenError(sentence) from None

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    def _may_order(self, who: socket_rights.Peer) -> bool:
        # A reload changes the rights of users at once. The group of the socket stays until the next start.
        operators = self._orders.config.operators
        return socket_rights.may_order(who, operators.uids, may_group_order=operators.may_group_order)

    async def _say(self, request: web.Request) -> web.Response:
        who = socket_rights.peer(request)
        if not self._may_order(who):
            return forbidden(who)
        try:
            order = (await bounded_body.document(request, _Said)).order()
        except ValueError:
            return web.json_response({"error": "bad_order", "sentence": _BAD_ORDER}, status=400)
        try:
            return web.json_response(await give(self._orders, order, str(who), self._wake))
        except OrderError as error:
            return web.json_response({"error": error.code, "sentence": error.sentence}, status=422)
        except LedgerError as error:
            return web.json_response({"error": error.code.value, "sentence": error.sentence}, status=503)

    async def _fleet(self, _: web.Request) -> web.Response:
        mine, now = self._orders, self._orders.clock.now()
        decided = await (await mine.ledger.reader()).decisions()
        known, notices = mine.ledger.recollection(now), mine.notices()
        seen = mine.seen.fleet if mine.seen is not None else None
        works, caps = mine.rules.workloads, mine.rules.caps
        return web.json_response(verb_json.fleet(works, known, decided, now, notices, caps, seen))

    async def _reload(self, request: web.Request) -> web.Response:
        who = socket_rights.peer(request)
        if not self._may_order(who):
            return forbidden(who)
        if self._process is None:
            return _nothing_yet()
        return web.json_response(self._process.reload().as_json())

    async def _status(self, _: web.Request) -> web.Response:
        mine, now, process = self._orders, self._orders.clock.now(), self._process
        decided = await (await mine.ledger.reader()).decisions()
        late, refused = (process.late(), process.refused) if process is not None else ((), ())
        daemon = status_json.daemon_of(mine.seen, mine.config, late, refused)
        known, notices, rules = mine.ledger.recollection(now), mine.notices(), mine.rules
        return web.json_response(status_json.shown(rules.workloads, known, decided, now, notices, rules.caps, daemon))

    async def _preview(self, request: web.Request) -> web.Response:
        mine, now, asked = self._orders, self._orders.clock.now(), request.query
        keep_disks, is_gone = (asked.get(name) == "true" for name in ("keep_disks", "is_gone"))
        order = Order(asked.get("verb", ""), asked.get("target", ""), keep_disks=keep_disks, is_gone=is_gone)
        grounds = order_grounds.Grounds(mine.rules.workloads, tuple(mine.markets), mine.ledger.recollection(now), now)
        try:
            return web.json_response(order_preview.shown(order, grounds))
        except OrderError as error:
            return web.json_response({"error": error.code, "sentence": error.sentence}, status=422)

    async def _billing(self, _: web.Request) -> web.Response:
        mine = self._orders
        leases = mine.ledger.recollection(mine.clock.now()).leases
        reader = await mine.ledger.reader()
        return web.json_response(await still_billing.shown(reader, leases, mine.doubts(), mine.seen))

    async def _running(self, _: web.Request) -> web.Response:
        return web.json_response(verb_json.running(self._orders.config.digest, self._orders.rules.caps))

    async def _holdings(self, _: web.Request) -> web.Response:
        now = self._orders.clock.now()
        present = reload_review.holdings(self._orders.ledger.recollection(now), now)
        return web.Response(body=holdings.encoded(present), content_type="application/json")

    async def _events(self, request: web.Request) -> web.Response:
        asked = request.query
        try:
            since = _instant(asked.get("since"))
            limit = min(max(int(asked.get("limit", "100")), 1), MOST_EVENTS)
        except ValueError:
            return web.json_response({"error": "bad_query"}, status=400)
        reader = await self._orders.ledger.reader()
        events = await reader.events(since, None, asked.get("workload"), asked.getall("kind", []), limit)
        return web.json_response(verb_json.events(events))

    async def _prices(self, request: web.Request) -> web.Response:
        asked = request.query
        try:
            since = _instant(asked.get("since"))
            limit = min(max(int(asked.get("limit", "100")), 1), MOST_EVENTS)
            model = gpus.model(asked["gpu"]) if "gpu" in asked else None
        except ValueError:
            return web.json_response({"error": "bad_query"}, status=400)
        reader = await self._orders.ledger.reader()
        return web.json_response(
            verb_json.prices(await reader.prices(None, model, asked.get("host"), since, None, limit))
        )

    async def _learned(self, _: web.Request) -> web.Response:
        reader = await self._orders.ledger.reader()
        shown = learned_json.learned(
            await reader.hosts(),
            await reader.capacity(),
            self._orders.clock.now(),
            await reader.notices(),
            await reader.host_checks(),
        )
        return web.json_response(shown)

    async def _reported(self, request: web.Request) -> web.Response:
        async with self._orders.ledger.archive() as reader:
            try:
                units = spend_reports.units_of(self._orders.rules.workloads)
                now = self._orders.clock.now()
                report = await spend_reports.answer(reader, request.path, request.query, now, units)
            except spend_reports.ReportError as error:
                return web.json_response({"error": "bad_query", "sentence": str(error)}, status=422)
        return web.Response(text=await asyncio.to_thread(json.dumps, report), content_type="application/json")

    async def _plan(self, _: web.Request) -> web.Response:
        seen = self._orders.seen
        return _nothing_yet() if seen is None else web.json_response(verb_json.plan(seen))

    async def _logs(self, request: web.Request) -> web.Response:
        question = log_answers.asked(request.query)
        if question is None:
            return web.json_response({"error": "bad_query"}, status=400)
        mine = self._orders
        now, reader = mine.clock.now(), await mine.ledger.reader()
        place = (mine.ledger.fleet_id, mine.config.ledger, mine.credential, now)
        grounds = log_answers.Grounds(mine.ledger.recollection(now), reader, mine.rules.workloads, *place)
        said = await log_answers.answer(question, grounds, mine.markets)
        return web.json_response(said, status=422 if "error" in said else 200)

    async def _explain(self, request: web.Request) -> web.Response:
        seen = self._orders.seen
        if seen is None:
            return _nothing_yet()
        reader = await self._orders.ledger.reader()
        decided, weighed = await reader.decisions(), await reader.weighed()
        beside = await reader.last_shadow_decisions()
        return web.json_response(verb_json.explained(seen, decided, weighed, request.query.get("workload"), beside))

    async def _shadow(self, request: web.Request) -> web.Response:
        mine, now = self._orders, self._orders.clock.now()
        leases = mine.ledger.recollection(now).leases
        reader = await mine.ledger.reader()
        return web.json_response(await shadow_json.shown(reader, leases, now, request.query.get("workload")))


def _instant(text: str | None) -> datetime | None:
    """Return the instant of an ISO text. Without a zone it is UTC."""
    if text is None:
        return None
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def forbidden(who: socket_rights.Peer) -> web.Response:
    """Return the refusal of an order from a user who may only read."""
    sentence = f"{who} may read but not give orders; run this as the daemon's user, or name the uid in [operators] uids"
    return web.json_response({"error": "forbidden", "sentence": sentence}, status=403)


def _nothing_yet() -> web.Response:
    return web.json_response({"error": "not_yet", "sentence": "no cycle has ended yet; try again"}, status=503)


async def give(orders: Orders, order: Order, who: str, wake: Callable[[], None]) -> dict[str, Any]:
    """Give an order, start a cycle, and return the messages, the sent intents and the doubts.

    Raises:
        OrderError: the order cannot be understood or matches nothing.
        LedgerError: the order cannot be recorded.
    """
    said, done = await orders.say(order, who)
    wake()
    return {"said": said, **answer(done, orders.doubts())}


def answer(done: list[Intent], doubts: list[Intent]) -> dict[str, Any]:
    """Return sent and doubtful intents, as JSON for the operator."""
    return {"done": [as_json(intent) for intent in done], "in_doubt": [as_json(intent) for intent in doubts]}


def as_json(intent: Intent) -> dict[str, Any]:
    """Return an intent as JSON for the operator."""
    return {
        "intent": intent.intent_id,
        "kind": intent.kind.value,
        "lease": intent.lease_id,
        "slot": str(intent.slot),
        "market": intent.market,
        "host": intent.host_id,
        "state": intent.state.value,
        "outcome": intent.outcome,
    }
