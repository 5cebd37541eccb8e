"""Exchanges and commits with the strikes of a story: one seam for all faults between the program and its surroundings.

A process that died is dead: from then on each of its exchanges and commits raises `Death`. So no handler and no other
task of it reaches the market or the file.
"""

import email.utils
from collections.abc import Callable
from typing import Any, Protocol

from multidict import CIMultiDict

from agent.clock import SteppedClock
from agent.ledger.ledger_errors import Code, LedgerError
from agent.markets.http_exchange import Lost, NeverLeft, Reply, Request
from tests.disasters import lies, orders
from tests.disasters.auctions import bid_answers
from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.clouds import server_answers
from tests.disasters.clouds.cloud_draw import MARKET as CLOUDS
from tests.disasters.orders import Order
from tests.disasters.story import Strike
from tests.disasters.strikes import ENDLESS, NO_NUMBER
from tests.support.in_process import InProcess

PAGE = b"<html><body><h1>nginx</h1></body></html>"
RETRY = {ENDLESS: "inf", NO_NUMBER: "soon"}
BEFORE = frozenset(
    {"never_left", "lost_before", "http_500", "html_403", "throttled", "http_401", "http_404", "death_before"}
)


LISTINGS = frozenset({"listing", "machines"})
"""Where a market lists what there is."""


class Death(BaseException):
    """The process was killed: nothing of it runs any more."""


class Process:
    """One life of the daemon."""

    def __init__(self) -> None:
        self.is_dead = False

    def die(self) -> Death:
        """End it; return what to raise."""
        self.is_dead = True
        return Death()

    def check(self) -> None:
        """Raise Death where it ended."""
        if self.is_dead:
            raise Death


class Witness(Protocol):
    """Receives every exchange; it alone knows the truth."""

    def leaves(self, order: Order) -> None:
        """See an order before the market acts on it."""

    def struck(self, strike: Strike, order: Order | None) -> None:
        """See that something went wrong."""

    def listed(self) -> None:
        """See that a market has just listed what there is."""

    def shown_stale(self, market: str, ids: frozenset[str]) -> None:
        """See which instances a stale listing of a market has."""

    def other_label(self) -> str:
        """Return a label of our fleet that this ledger never wrote."""

    def foreign_id(self, market: str) -> str:
        """Return the id of an instance that somebody rented by hand, or of none."""

    def named(self, order: Order) -> Order:
        """Return an order with the id of its instance in the place of a name."""


class Weather:
    """The strike of each occurrence of a place."""

    def __init__(self, strikes: tuple[Strike, ...]) -> None:
        self._strikes: dict[tuple[str, str], list[Strike]] = {}
        for strike in strikes:
            self._strikes.setdefault((strike.market, strike.place), []).append(strike)
        self._counted: dict[tuple[str, str], int] = {}
        self.is_over = False

    def next(self, market: str, place: str) -> Strike | None:
        """Count one more occurrence of a place; return what strikes it."""
        key = (market, place)
        number = self._counted[key] = self._counted.get(key, 0) + 1
        for strike in self._strikes.get(key, ()) if not self.is_over else ():
            if strike.number <= number < strike.number + strike.times:
                return strike
        return None


class StruckExchange:
    """Carries the requests of one process to one market, through the story's weather."""

    def __init__(
        self, market: str, inner: InProcess, weather: Weather, witness: Witness, process: Process, clock: SteppedClock
    ) -> None:
        self._market = market
        self._inner = inner
        self._weather = weather
        self._witness = witness
        self._process = process
        self._clock = clock
        self._before: dict[str, Reply] = {}

    async def send(self, request: Request, most_bytes: int) -> Reply:
        """Send a request once and return the whole answer."""
        return await self._through(request, lambda: self._inner.send(request, most_bytes))

    async def first(self, request: Request, most_bytes: int) -> Reply:
        """Return the first bytes of an answer."""
        self._process.check()
        return await self._inner.first(request, most_bytes)

    async def tail(self, request: Request, most_bytes: int) -> Reply:
        """Return the present answer of a stream."""
        return await self._through(request, lambda: self._inner.tail(request, most_bytes))

    async def close(self) -> None:
        """Nothing is held."""

    async def _through(self, request: Request, go: Callable[[], Any]) -> Reply:
        self._process.check()
        order = self._witness.named(orders.read(self._market, request))
        strike = self._weather.next(self._market, order.place)
        if strike is None:
            return await self._carry(order, go)
        self._witness.struck(strike, order)
        if strike.fault in BEFORE:
            return self._refused(strike)
        if strike.fault in {"slow", "too_slow"}:
            await self._clock.sleep(8.0 if strike.fault == "slow" else 45.0)
            self._process.check()
        if strike.fault in _UNDONE:
            return _UNDONE[strike.fault](order, strike, self._witness)
        return self._after(strike, order, await self._carry(order, go))

    async def _carry(self, order: Order, go: Callable[[], Any]) -> Reply:
        if order.kind:
            self._witness.leaves(order)
        reply: Reply = await go()
        if order.place == "listing":
            self._witness.listed()
        if order.place in LISTINGS:
            # The content of a later stale answer.
            self._before.setdefault(order.place, reply)
        return reply

    def _refused(self, strike: Strike) -> Reply:
        fault = strike.fault
        if fault == "never_left":
            raise NeverLeft("no connection (a story)")
        if fault == "lost_before":
            raise Lost("the connection broke (a story)")
        if fault == "death_before":
            raise self._process.die()
        if fault == "throttled":
            word = RETRY.get(strike.amount, f"{strike.amount:g}")
            return self._page(429, b'{"detail":"API requests too frequent"}', {"Retry-After": word})
        if fault == "html_403":
            return self._page(403, PAGE)
        return self._page(int(fault.removeprefix("http_")), PAGE)

    def _after(self, strike: Strike, order: Order, reply: Reply) -> Reply:
        fault = strike.fault
        if fault in {"lost_after", "half"}:
            raise Lost("the connection broke (a story)")
        if fault == "death_after":
            raise self._process.die()
        return self._altered(strike, order, reply)

    def _altered(self, strike: Strike, order: Order, reply: Reply) -> Reply:
        fault = strike.fault
        if fault == "http_503_after":
            return self._page(503, PAGE)
        if fault == "malformed":
            return Reply(reply.status, reply.headers, b'{"success": tru' + reply.body[: len(reply.body) // 2])
        if fault == "date":
            return Reply(reply.status, self._dated(reply, strike.amount), reply.body)
        if fault == "stale" and order.place in LISTINGS:
            stale, self._before[order.place] = self._before[order.place], reply
            self._witness.shown_stale(self._market, lies.ids(stale))
            return Reply(reply.status, reply.headers, stale.body)
        if reply.is_ok and fault in lies.OF_ROWS:
            return lies.told(self._market, fault, reply, strike.amount, self._witness.other_label())
        if reply.is_ok and fault in _REWORDED:
            return _REWORDED[fault](order, strike, self._witness, reply)
        return reply

    def _page(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> Reply:
        date = email.utils.formatdate(int(self._clock.time()), usegmt=True)
        return Reply(status, CIMultiDict({"Date": date, **(headers or {})}), body)

    def _dated(self, reply: Reply, seconds: float) -> CIMultiDict[str]:
        date = email.utils.formatdate(int(self._clock.time() + seconds), usegmt=True)
        return CIMultiDict({**reply.headers, "Date": date})


def _refuse_release(order: Order, strike: Strike, _: Witness) -> Reply:
    """A release that the market refuses in its own soft way; nothing was done."""
    del strike
    return _LOCKED[order.market]


def _deny(order: Order, strike: Strike, _: Witness) -> Reply:
    """The market denies an instance that is there."""
    del strike
    return _UNKNOWN[order.market]


def _wrong_id(order: Order, strike: Strike, witness: Witness, reply: Reply) -> Reply:
    del strike
    wrong = witness.foreign_id(order.market)
    return _named(order, wrong, reply) if wrong else reply


def _refused_with_id(order: Order, strike: Strike, witness: Witness, reply: Reply) -> Reply:
    """The order is carried out, but the answer refuses it and names a foreign instance as its leftover.

    A market that knows no leftovers says that the name is in use, as if the order had been placed before.
    """
    wrong = witness.foreign_id(order.market)
    if order.market in _NAME_IN_USE:
        return _NAME_IN_USE[order.market]
    if order.market != "vast" or not wrong:
        return _wrong_id(order, strike, witness, reply)
    body = b'{"success":false,"error":"bid_too_low","msg":"bid too low","new_contract":%s}' % wrong.encode()
    return Reply(400 if strike.amount % 2 else 200, reply.headers, body)


def _no_id(order: Order, strike: Strike, _: Witness, reply: Reply) -> Reply:
    del strike
    return Reply(reply.status, reply.headers, b'{"success":true}' if order.market == "vast" else b"{}")


def _named(order: Order, wrong: str, reply: Reply) -> Reply:
    return _NAMED[order.market](wrong, reply)


def _contract_named(wrong: str, reply: Reply) -> Reply:
    return Reply(reply.status, reply.headers, b'{"success":true,"new_contract":%s}' % wrong.encode())


def _pod_named(wrong: str, reply: Reply) -> Reply:
    if b"podRentInterruptable" in reply.body:
        body = b'{"data":{"podRentInterruptable":{"id":"%s"}}}' % wrong.encode()
        return Reply(reply.status, reply.headers, body)
    start, mark, rest = reply.body.partition(b'"id":"')
    return Reply(reply.status, reply.headers, start + mark + wrong.encode() + b'"' + rest.partition(b'"')[2])


def _refuse_request(order: Order, strike: Strike, _: Witness) -> Reply:
    """The market calls the request no request that it takes; nothing was done."""
    del strike
    return _INVALID[order.market]


def _refuse_limit(_order: Order, _strike: Strike, _: Witness) -> Reply:
    """The market calls a limit too low; nothing was done."""
    return bid_answers.invalid(("body", "limit_price"), "Limit price below minimum of $0.50")


def _page_of(status: int, body: bytes) -> Reply:
    return Reply(status, CIMultiDict(), body)


_LOCKED = {
    "vast": _page_of(200, b'{"success":false,"error":"busy","msg":"try again"}'),
    "runpod": _page_of(409, b'{"title":"Conflict","status":409,"detail":"pod is locked"}'),
    MARKET: bid_answers.refusal(409, "Bid is locked"),
    CLOUDS: server_answers.refusal("Run is locked"),
}
_UNKNOWN = {
    "vast": _page_of(404, b'{"success":false,"error":"no_such_instance","msg":"no such instance"}'),
    "runpod": _page_of(404, b'{"title":"Not Found","status":404,"detail":"pod not found"}'),
    MARKET: bid_answers.refusal(404, "Bid not found"),
    CLOUDS: server_answers.unknown(),
}
_INVALID = {
    "vast": _page_of(400, b'{"success":false,"error":"invalid_args","msg":"error 400/3467: Invalid args"}'),
    "runpod": _page_of(422, b'{"title":"Unprocessable Entity","status":422,"detail":"Request validation failed."}'),
    MARKET: bid_answers.invalid(("body", "launch_specification"), "Extra inputs are not permitted"),
}
_NAME_IN_USE = {
    MARKET: bid_answers.refusal(400, "Name already used"),
    CLOUDS: server_answers.refusal(server_answers.CHANGED),
}
_NAMED = {
    "vast": _contract_named,
    "runpod": _pod_named,
    MARKET: bid_answers.named,
    CLOUDS: server_answers.named,
}
_UNDONE = {"refused": _refuse_release, "gone": _deny, "invalid": _refuse_request, "low_limit": _refuse_limit}
UNHEARD = BEFORE | _UNDONE.keys()
"""Faults of an order that the market never gets."""
_REWORDED = {"wrong_id": _wrong_id, "refused_with_id": _refused_with_id, "no_id": _no_id}


def committing(weather: Weather, witness: Witness, process: Process, work: Callable[[], Any]) -> Any:
    """Run one piece of work on the ledger as the story has it."""
    strike = weather.next("ledger", "commit")
    if strike is None:
        return work()
    witness.struck(strike, None)
    if strike.fault == "death_before":
        raise process.die()
    if strike.fault == "full":
        raise _full()
    result = work()
    if strike.fault == "death_after":
        raise process.die()
    if strike.fault == "full_after":
        raise _full()
    return result


def _full() -> LedgerError:
    return LedgerError(Code.UNWRITABLE, "the disk is full (a story): free space on it")
