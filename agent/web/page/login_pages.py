"""Logging in and out: a visitor with the token may give orders."""

from aiohttp import web

from agent.web.page.frame import Frame
from agent.web.page.visitors import Visitors
from agent.web.request_checks import bounded_body


class LoginPages:
    """The routes of logging in and out."""

    def __init__(self, visitors: Visitors, frame: Frame) -> None:
        """Let `visitors` in."""
        self._visitors = visitors
        self._frame = frame

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.get("/login", self._ask_token),
            web.post("/login", self._log_in),
            web.post("/logout", self._log_out),
        ]

    async def _ask_token(self, request: web.Request) -> web.Response:
        return self._frame.shown(request, "login.html", {"wrong": ""})

    async def _log_in(self, request: web.Request) -> web.Response:
        token = (await bounded_body.form(request)).get("token", "")
        entry = self._visitors.log_in(request, token)
        if entry is None:
            must_wait = self._visitors.must_wait(request)
            wrong = "Too many tries: wait a minute." if must_wait else "That is not the token."
            if not self._visitors.may_log_in:
                wrong = "This daemon has no token: set credential in [web], and restart it."
            return self._frame.shown(request, "login.html", {"wrong": wrong}, 403)
        answer = web.HTTPSeeOther("/")
        entry.give(answer)
        raise answer

    async def _log_out(self, request: web.Request) -> web.Response:
        if self._visitors.may_order(request, (await bounded_body.form(request)).get("proof", "")):
            self._visitors.log_out(request)
        raise web.HTTPSeeOther("/")
