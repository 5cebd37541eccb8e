"""The page: the fleet with its money, last plan and losses; a lease's story; orders for holders of the token.

1. Everything that a market or a host wrote is escaped by the templates; the page runs no script but its own file.
2. Reading needs nothing; an order needs a session, a proof that it was made here, and a confirmation.
3. What another site's page asks for or posts is refused before it comes here: see agent/web/guards/guard.py.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import resources
from typing import Any

import jinja2
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from agent import __version__
from agent.act.orders import operator_orders
from agent.domain.record.lease import Lease
from agent.domain.work.order import Order
from agent.ledger.ledger_errors import LedgerError
from agent.web.daemon_port import Orders
from agent.web.feed.live_feed import LiveFeed
from agent.web.guards import bounded_body, guard
from agent.web.page import dashboard
from agent.web.page.visitors import Visitors

EVENTS = 100
STATIC = {"page.css": "text/css", "page.js": "text/javascript"}
MEANINGS = {
    "drain": "Nothing new is rented for it; its leases go on until they are lost or released.",
    "pause": "It is stopped and its disk goes on billing, until you resume it.",
    "resume": "Your pause, drain or hold of it ends.",
    "release": "It is ended for good, with its disk and all files on it.",
    "lock": "It is not rented until you unlock it; leases that run there go on.",
    "unlock": "It may be used again at once.",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Under "no-referrer" a browser would send no origin for our own forms either.
    "Referrer-Policy": "same-origin",
}


class Pages:
    """The routes of the page, over the App."""

    def __init__(self, app: Orders, visitors: Visitors, wake: Callable[[], None], feed: LiveFeed | None = None) -> None:
        """Show `app`; `wake` starts a cycle after an order. `feed` says what the page is made from."""
        self._feed = feed or LiveFeed(app)
        self._app = app
        self._visitors = visitors
        self._wake = wake
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("agent.web"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
        )
        self._templates.globals["this_year"] = lambda: app.clock.now().year
        static = resources.files("agent.web") / "static"
        self._static = {name: (static / name).read_bytes() for name in STATIC}

    def template(self, name: str) -> jinja2.Template:
        """Return a template of the page."""
        return self._templates.get_template(name)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes, each with headers that forbid foreign script."""
        found = [
            web.get("/", self._board),
            web.get("/lease/{lease}", self._lease),
            web.get("/events", self._events),
            web.get("/login", self._ask_token),
            web.post("/login", self._log_in),
            web.post("/logout", self._log_out),
            web.get("/confirm", self._confirm),
            web.post("/order", self._order),
            web.get("/static/{name}", self._file),
        ]
        # Drawing blocks the cycles, so one page is drawn at a time, however many are requested. A route that reads a
        # body waits for its sender and takes no turn.
        turn = guard.Turn()
        handlers = [turn.taken(each.handler) if each.method == hdrs.METH_GET else each.handler for each in found]
        return [
            web.route(each.method, each.path, _headed(handler)) for each, handler in zip(found, handlers, strict=True)
        ]

    async def _board(self, request: web.Request) -> web.Response:
        page = request.query.get("page", "1")
        number = int(page) if page.isascii() and page.isdecimal() and len(page) <= 6 else 1  # noqa: PLR2004 - digits
        reader = await self._app.ledger.reader()
        return self._shown(request, "board.html", await dashboard.board(self._feed.sources(), reader, number))

    async def _lease(self, request: web.Request) -> web.Response:
        lease = await self._find(request.match_info["lease"])
        if lease is None:
            return self._said(request, "No such lease", "The ledger knows no lease of that name.", 404)
        told = await dashboard.story(lease, await self._app.ledger.reader(), self._app.clock.now())
        return self._shown(request, "lease.html", told)

    async def _find(self, lease_id: str) -> Lease | None:
        known = self._app.ledger.recollection(self._app.clock.now()).leases
        mine = next((lease for lease in known if lease.lease_id == lease_id), None)
        if mine is not None:
            return mine
        found = await (await self._app.ledger.reader()).leases(1, ids=[lease_id])
        return found[0] if found else None

    async def _events(self, request: web.Request) -> web.Response:
        asked = request.query.get("before")
        before = _instant(asked) if asked else None
        if asked and before is None:
            return self._said(
                request, "Bad address", "`before` is not an instant such as 2026-11-21T00:00:00+00:00.", 400
            )
        found = await (await self._app.ledger.reader()).events(until=before, limit=EVENTS)
        older = found[-1].at.isoformat() if len(found) == EVENTS else ""
        told = {"events": [dashboard.event(each) for each in found], "before": older, "version": __version__}
        return self._shown(request, "events.html", told)

    async def _ask_token(self, request: web.Request) -> web.Response:
        return self._shown(request, "login.html", {"version": __version__, "wrong": ""})

    async def _log_in(self, request: web.Request) -> web.Response:
        token = (await bounded_body.form(request)).get("token", "")
        entry = self._visitors.log_in(request, token)
        if entry is None:
            must_wait = self._visitors.must_wait(request)
            wrong = "Too many tries: wait a minute." if must_wait else "That is not the token."
            if not self._visitors.may_log_in:
                wrong = "This daemon has no token: set credential in [web], and restart it."
            return self._shown(request, "login.html", {"version": __version__, "wrong": wrong}, 403)
        answer = web.HTTPSeeOther("/")
        entry.give(answer)
        raise answer

    async def _log_out(self, request: web.Request) -> web.Response:
        if self._visitors.may_order(request, (await bounded_body.form(request)).get("proof", "")):
            self._visitors.log_out(request)
        raise web.HTTPSeeOther("/")

    async def _confirm(self, request: web.Request) -> web.Response:
        verb, target = request.query.get("verb", ""), request.query.get("target", "")
        if self._visitors.session(request) is None:
            raise web.HTTPSeeOther("/login")
        if verb not in MEANINGS:
            return self._said(request, "Bad address", "There is no such order on this page.", 400)
        told = {"verb": verb, "target": target, "meaning": MEANINGS[verb], "version": __version__}
        return self._shown(request, "confirm.html", told)

    async def _order(self, request: web.Request) -> web.Response:
        form = await bounded_body.form(request)
        if not self._visitors.may_order(request, form.get("proof", "")):
            return self._said(request, "Not done", "Log in first, and order from this page.", 403)
        order = Order(form.get("verb", ""), form.get("target", ""))
        if order.verb not in MEANINGS or order.is_of_everything:
            return self._said(request, "Bad address", "There is no such order on this page.", 400)
        try:
            said, _ = await self._app.say(order, "the page")
        except operator_orders.OrderError as error:
            return self._said(request, "Not done", error.sentence, 422)
        except LedgerError as error:
            return self._said(request, "Not written down", error.sentence, 503)
        self._wake()
        return self._said(request, "Done", said)

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in STATIC:
            raise web.HTTPNotFound
        return web.Response(body=self._static[name], content_type=STATIC[name], charset="utf-8")

    def _said(self, request: web.Request, title: str, sentence: str, status: int = 200) -> web.Response:
        told = {"title": title, "sentence": sentence, "version": __version__}
        return self._shown(request, "said.html", told, status)

    def _shown(self, request: web.Request, name: str, told: Mapping[str, Any], status: int = 200) -> web.Response:
        session = self._visitors.session(request)
        visitor = {
            "session": session is not None,
            "proof": self._visitors.proof(session) if session is not None else "",
            "may_log_in": self._visitors.may_log_in,
        }
        text = self.template(name).render(told, **visitor)
        return web.Response(text=text, content_type="text/html", status=status)


def _instant(text: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else None


def _headed(handler: Handler) -> Handler:
    async def answered(request: web.Request) -> web.StreamResponse:
        try:
            answer = await handler(request)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        answer.headers.update(HEADERS)
        return answer

    return answered
