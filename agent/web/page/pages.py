"""The page: the fleet with its money, last plan and losses, and a lease's story. Its other screens are beside it.

1. The templates escape all text from markets and hosts. The page runs no script except its own files.
2. Reading needs no login.
3. Requests and forms from another site's page are refused before: see agent/web/request_checks/middlewares.py.
"""

from collections.abc import Callable
from functools import partial
from importlib import resources

import jinja2
from aiohttp import web

from agent.domain.record.lease import Lease
from agent.web.daemon_port import Orders
from agent.web.feed.live_feed import LiveFeed
from agent.web.page import dashboard, frame
from agent.web.page.frame import Frame
from agent.web.page.login_pages import LoginPages
from agent.web.page.order_pages import OrderPages
from agent.web.page.record_pages import RecordPages
from agent.web.page.visitors import Visitors

STATIC = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "charts.js": "text/javascript",
    "uplot/uplot.css": "text/css",
    "uplot/uplot.js": "text/javascript",
    "uplot/LICENSE": "text/plain",
}


class Pages:
    """The routes of the page, over the App."""

    def __init__(self, app: Orders, visitors: Visitors, wake: Callable[[], None], feed: LiveFeed | None = None) -> None:
        """Show `app`. `wake` starts a cycle after an order. `feed` has the sources of the page."""
        self._feed = feed or LiveFeed(app)
        self._app = app
        self._frame = Frame(visitors, app.clock)
        self._others = (
            LoginPages(visitors, self._frame),
            OrderPages(app, visitors, self._frame, wake),
            RecordPages(app, self._frame),
        )
        static = resources.files("agent.web") / "static"
        self._static = {name: (static / name).read_bytes() for name in STATIC}

    def template(self, name: str) -> jinja2.Template:
        """Return a template of the page."""
        return self._frame.template(name)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes, each with headers that forbid foreign script."""
        mine = [
            web.get("/", self._board),
            web.get("/lease/{lease}", self._lease),
            web.get("/static/{name:.+}", self._file),
        ]
        return frame.headed([*mine, *(route for each in self._others for route in each.routes())])

    async def _board(self, request: web.Request) -> web.Response:
        page = request.query.get("page", "1")
        number = int(page) if page.isascii() and page.isdecimal() and len(page) <= 6 else 1  # noqa: PLR2004 - digits
        values = await self._feed.of_one_version(partial(dashboard.board, page=number))
        return self._frame.shown(request, "board.html", values)

    async def _lease(self, request: web.Request) -> web.Response:
        lease = await self._find(request.match_info["lease"])
        if lease is None:
            return self._frame.said(request, "No such lease", "The ledger knows no lease of that name.", 404)
        now = self._app.clock.now()
        figures = self._app.ledger.recollection(now).guard_figures.get(lease.lease_id)
        values = await dashboard.story(lease, await self._app.ledger.reader(), now, figures)
        return self._frame.shown(request, "lease.html", values)

    async def _find(self, lease_id: str) -> Lease | None:
        known = self._app.ledger.recollection(self._app.clock.now()).leases
        mine = next((lease for lease in known if lease.lease_id == lease_id), None)
        if mine is not None:
            return mine
        leases = await (await self._app.ledger.reader()).leases(1, ids=[lease_id])
        return leases[0] if leases else None

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in STATIC:
            raise web.HTTPNotFound
        return web.Response(body=self._static[name], content_type=STATIC[name], charset="utf-8")
