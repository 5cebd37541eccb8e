"""A webhook's whole way over real HTTP: our adapter registers it, the market signs and delivers, our receiver reads."""

import dataclasses
import datetime as dt
from collections.abc import AsyncIterator

import pytest

from agent.clock import SteppedClock
from agent.domain.market.interruption import MarketEvent
from agent.markets import market_errors
from agent.markets.vast import events, webhooks
from agent.telemetry import metric_families
from agent.telemetry.health import Health
from agent.web.web_server import Server
from agent.web.webhook_deliveries import Deliveries
from tests.support.contracts import evicted
from tests.support.market import START, Market, running_market
from tests.support.scene import KEY

URL = "https://hooks.example.com/webhooks/vast"


def _utc(at: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(at, dt.UTC)


@dataclasses.dataclass
class Way:
    """A market, our receiver, and the receiver's answers to its deliveries."""

    market: Market
    clock: SteppedClock
    secret: str = ""
    woken: int = 0

    async def register(self) -> None:
        self.secret = await webhooks.register(URL, self.market.simulator.vast_url, lambda: KEY, self.clock)

    def wake(self) -> None:
        self.woken += 1

    async def statuses(self) -> list[int]:
        return [row["status"] for row in (await self.market.truth())["deliveries"]]


class _Following(SteppedClock):
    """The receiver's clock, which shows the market's own time."""

    def __init__(self, market: Market) -> None:
        self._market = market
        super().__init__(_utc(START))

    def now(self) -> dt.datetime:
        return _utc(self._market.world.now)


@pytest.fixture
async def way() -> AsyncIterator[Way]:
    async with running_market() as market:
        clock = _Following(market)
        made = Way(market, clock)
        taker = Deliveries(lambda: made.secret, clock, made.wake)
        server = Server("127.0.0.1", 0, metric_families.registry(), Health(clock.monotonic), taker.routes())
        host, port = await server.start()
        await market.control("POST", "/webhooks", {"name": "hooks.example.com", "url": f"http://{host}:{port}"})
        await made.register()
        yield made
        await server.close()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[MarketEvent | None]:
    """Every delivery as the adapter read it."""
    seen: list[MarketEvent | None] = []
    webhook = events.webhook

    def noted(*given: object) -> MarketEvent | None:
        seen.append(webhook(*given))  # type: ignore[arg-type]
        return seen[-1]

    monkeypatch.setattr(events, "webhook", noted)
    return seen


async def test_an_outbid_wakes_us_and_names_bid_and_minimum(way: Way, read: list[MarketEvent | None]) -> None:
    _, row, _, _ = await evicted(way.market, on_demand=False)
    told = row["associated_id"]
    (event,) = [event for event in read if event is not None and event.kind == "outbid"]
    assert (event.event_id, event.instance_id) == (row["event_id"], str(told["instance_id"]))
    assert event.your_bid is not None
    assert event.new_floor is not None
    assert (event.your_bid.dollars, event.new_floor.dollars) == (told["your_bid"], told["new_min_bid"])
    assert way.woken == 1
    assert await way.statuses() == [204]


async def test_a_rotated_secret_is_refused_until_ours_is_the_new_one(way: Way) -> None:
    rotated = (await way.market.call("POST", "/webhooks/1/rotate-secret/", {})).body["webhook"]["webhook_secret"]
    await way.market.call("POST", "/webhooks/1/test/", {})
    assert await way.statuses() == [401]
    way.secret = rotated
    await way.market.call("POST", "/webhooks/1/test/", {})
    assert await way.statuses() == [401, 204]
    assert way.woken == 1


async def test_the_same_address_is_registered_once(way: Way) -> None:
    with pytest.raises(market_errors.Rejected) as refused:
        await way.register()
    assert refused.value.reason == "already_registered"
