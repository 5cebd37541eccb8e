"""The frame of every screen: templates, headers that forbid foreign script, the visitor's rights, one-line screens."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import jinja2
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from markupsafe import Markup, escape

from agent import __version__
from agent.clock import Clock
from agent.web.page import chart, timeline
from agent.web.page.visitors import Visitors
from agent.web.request_checks import middlewares

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer", a browser would also send no origin for our own forms.
    "Referrer-Policy": "same-origin",
}


COMMAND = re.compile(r"`([^`]+)`")


class Frame:
    """Draws the screens of one daemon."""

    def __init__(self, visitors: Visitors, clock: Clock) -> None:
        """Show each visitor his rights. A date shows its year if that is not the year of `clock`."""
        self._visitors = visitors
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("agent.web"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
        )
        self._templates.filters |= {
            "sentence": sentence,
            "small_chart": partial(chart.drawn, size=chart.SMALL),
            "large_chart": partial(chart.drawn, size=chart.LARGE),
            "band": timeline.drawn,
            "spoken": timeline.words,
        }
        self._templates.globals["this_year"] = lambda: clock.now().year

    def template(self, name: str) -> jinja2.Template:
        """Return a template of the page."""
        return self._templates.get_template(name)

    def shown(self, request: web.Request, name: str, values: Mapping[str, Any], status: int = 200) -> web.Response:
        """Return a screen made from a template."""
        session = self._visitors.session(request)
        visitor = {
            "version": __version__,
            "session": session is not None,
            "proof": self._visitors.proof(session) if session is not None else "",
            "may_log_in": self._visitors.may_log_in,
            "path": request.path,
        }
        text = self.template(name).render(visitor | dict(values))
        return web.Response(text=text, content_type="text/html", status=status)

    def said(self, request: web.Request, title: str, sentence: str, status: int = 200) -> web.Response:
        """Return a screen with one sentence."""
        return self.shown(request, "said.html", {"title": title, "sentence": sentence}, status)


def sentence(text: str) -> Markup:
    """Return a sentence, escaped, with its commands (between backticks) set as code."""
    return Markup(COMMAND.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def headed(routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
    """Return the routes with the headers.

    Drawing blocks the cycles, so only one page is drawn at a time. A route that reads a body waits for its sender and
    takes no turn.
    """
    turn: Callable[[Handler], Handler] = middlewares.Turn().taken
    return [
        web.route(each.method, each.path, _headed(turn(each.handler) if each.method == hdrs.METH_GET else each.handler))
        for each in routes
    ]


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
