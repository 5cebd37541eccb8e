"""The witness: it reads the ledger file at the moment at which an order reaches the market."""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from agent.domain.record.intent import IntentKind
from agent.markets import labels
from agent.simulator.http_wire import Answer, Asked
from agent.simulator.vast.model import Contract
from agent.simulator.vast.world import World
from tests.support import engines
from tests.support.in_process import Answering
from tests.support.scene import FLEET

_WRITE = re.compile(r"^/api/v0/(?P<route>asks|instances/bid_price|instances)/(?P<number>\d+)/?$")
_SENT = "SELECT intent_id, kind FROM intents WHERE instance_id = ? AND kind = ? AND state = 'sent'"
_SENT_RENT = "SELECT intent_id, kind FROM intents WHERE offer_id = ? AND kind = ? AND state = 'sent'"


@dataclasses.dataclass(slots=True)
class Order:
    """A write as it reached the market, with the intent that was *sent* in the ledger at that moment, if any."""

    at: float
    method: str
    route: str
    number: int
    kind: IntentKind
    intent_id: str = ""


class Witness:
    """Stands between the network and the market, and reads the ledger file before each order is answered."""

    def __init__(self, ledger: Path, market: World, now: Callable[[], float]) -> None:
        self.orders: list[Order] = []
        self.broken: list[str] = []
        self._ledger = ledger
        self._market = market
        self._now = now

    def before(self, answer: Answering) -> Answering:
        async def witness(asked: Asked) -> Answer:
            match = _WRITE.match(asked.path)
            if match is not None and asked.method in {"PUT", "DELETE"}:
                body = msgspec.json.decode(asked.body or b"{}")
                self._look(asked.method, match["route"], int(match["number"]), body)
            return await answer(asked)

        return witness

    def _look(self, method: str, route: str, number: int, body: Any) -> None:
        """Read the ledger file at the moment at which an order arrives."""
        order = Order(self._now(), method, route, number, _kind(method, route, body))
        query = _SENT_RENT if route == "asks" else _SENT
        sent = [row[0] for row in engines.rows(self._ledger, query, str(number), order.kind.value)]
        if route == "asks":
            label = labels.parse(str(body.get("label") or ""))
            sent = [each for each in sent if label is not None and each == label.intent_id]
        order.intent_id = sent[0] if sent else ""
        if not sent:
            self.broken.append(f"{method} {route}/{number} arrived and the ledger holds no such intent as sent")
        elif order.kind.is_paying and any(order.intent_id == other.intent_id for other in self.orders):
            self.broken.append(f"{order.kind.value} {order.intent_id} arrived twice")
        contract = self._market.contracts.get(number)
        if route != "asks" and contract is not None and not is_ours(contract):
            self.broken.append(f"{method} {route}/{number} is about an instance that is not ours")
        self.orders.append(order)


def is_ours(contract: Contract) -> bool:
    """Return whether a contract has our fleet's label."""
    label = labels.parse(contract.label or "")
    return label is not None and label.fleet_id == FLEET


def intent_id(contract: Contract) -> str:
    """Return the intent in the label of a contract, or an empty text."""
    label = labels.parse(contract.label or "")
    return label.intent_id if label else ""


def _kind(method: str, route: str, body: Any) -> IntentKind:
    if route == "asks":
        return IntentKind.RENT
    if method == "DELETE":
        return IntentKind.RELEASE
    if route == "instances/bid_price":
        return IntentKind.REBID
    return IntentKind.RESUME if body.get("state") == "running" else IntentKind.PAUSE
