"""Orders from the page: the expected effect with dollars an hour, a confirmation, and the answer.

1. An order needs a session, the proof of our own form, and a confirmation (agent/web/page/visitors.py).
2. An order that ends leases for good (a release, a kill of everything) needs a word that the person types.
3. An order takes the same path as POST /say on the operators' socket.
4. An order concerns the leases that were shown, or nothing is done. A kill of everything always acts.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from aiohttp import web

from agent.act.orders import order_grounds, order_meanings, order_preview
from agent.act.orders.order_error import OrderError
from agent.act.orders.order_grounds import Grounds
from agent.domain.record.hold import Word
from agent.domain.work.order import Order
from agent.ledger.ledger_errors import LedgerError
from agent.web import operator_socket
from agent.web.daemon_port import Orders
from agent.web.page.frame import Frame
from agent.web.page.visitors import Visitors
from agent.web.request_checks import bounded_body

NO_SUCH_ORDER = "There is no such order on this page."


class OrderPages:
    """The routes of orders."""

    def __init__(self, app: Orders, visitors: Visitors, frame: Frame, wake: Callable[[], None]) -> None:
        """Give orders to `app`. `wake` starts a cycle after an order."""
        self._app = app
        self._visitors = visitors
        self._frame = frame
        self._wake = wake

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [web.get("/confirm", self._confirm), web.post("/order", self._order)]

    async def _confirm(self, request: web.Request) -> web.Response:
        if self._visitors.session(request) is None:
            raise web.HTTPSeeOther("/login")
        order = _order_of(request.query)
        if order is None:
            return self._frame.said(request, "Bad address", NO_SUCH_ORDER, 400)
        return self._asked(request, order)

    def _asked(self, request: web.Request, order: Order, wrong: str = "") -> web.Response:
        """Return the question: the expected effect of the order, and the form that gives it."""
        try:
            preview = order_preview.shown(order, self._grounds())
        except OrderError as error:
            return self._frame.said(request, "Not possible", error.sentence, 422)
        rows = preview["leases"]
        values: dict[str, Any] = {
            "order": order,
            "name": "everything" if order.is_of_everything else order.target,
            "meaning": order_meanings.meaning(order),
            "leases": rows,
            "named": ",".join(order_preview.named(preview)),
            "in_doubt": preview["in_doubt"],
            "before": sum(row["dollars_per_hour"] for row in rows),
            "after": sum(row["after_dollars_per_hour"] for row in rows),
            "word": self._word(order),
            "wrong": wrong,
        }
        return self._frame.shown(request, "confirm.html", values, 422 if wrong else 200)

    async def _order(self, request: web.Request) -> web.Response:
        form = await bounded_body.form(request)
        if not self._visitors.may_order(request, form.get("proof", "")):
            return self._frame.said(request, "Not done", "Log in first, and order from this page.", 403)
        order = _order_of(form)
        if order is None:
            return self._frame.said(request, "Bad address", NO_SUCH_ORDER, 400)
        order = _agreed(order, form)
        word, typed = self._word(order), form.get("typed", "").strip()
        if word and typed != word:
            wrong = f"Nothing was done: {word} must be typed." if typed else f"Nothing was done: type {word} below."
            return self._asked(request, order, wrong)
        try:
            answer = await operator_socket.give(self._app, order, "the page", self._wake)
        except OrderError as error:
            if error.code == order_preview.CHANGED:
                return self._asked(request, order, error.sentence)
            return self._frame.said(request, "Not done", error.sentence, 422)
        except LedgerError as error:
            return self._frame.said(request, "Not written down", error.sentence, 503)
        return self._frame.shown(request, "done.html", {"title": "Done", **answer})

    def _word(self, order: Order) -> str:
        """Return the word that a person must type: the fleet id for a kill, the slot or workload for a release."""
        if order.is_of_everything:
            return self._app.ledger.fleet_id
        if order.verb != "release":
            return ""
        leases = self._app.ledger.recollection(self._app.clock.now()).leases
        named = (str(lease.slot) for lease in leases if order.target in {lease.lease_id, lease.instance_id})
        return next(named, order.target)

    def _grounds(self) -> Grounds:
        app, now = self._app, self._app.clock.now()
        return order_grounds.Grounds(app.rules.workloads, tuple(app.markets), app.ledger.recollection(now), now)


def _order_of(asked: Mapping[str, str]) -> Order | None:
    """Return the order in a query or a form, or None if this page does not give such an order."""
    order = Order(asked.get("verb", ""), asked.get("target", ""), keep_disks=asked.get("keep_disks") == "true")
    if order.is_of_everything:
        return order if order.verb == Word.KILL else None
    return Order(order.verb, order.target) if order.verb in order_meanings.MEANINGS else None


def _agreed(order: Order, form: Mapping[str, str]) -> Order:
    """Return the order for the leases that the form showed. A form without leases showed none."""
    if order.is_of_everything:
        return order
    return replace(order, leases=tuple(each for each in form.get("leases", "").split(",") if each))
