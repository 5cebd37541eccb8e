"""Wraps a market and reports every call to an observer: the operation, its outcome and its duration.

Adapters know nothing of metrics; the observer decides how to use a report.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from agent.domain.market.instance import Instance
from agent.domain.market.interruption import MarketEvent
from agent.domain.market.market_rules import MarketRules
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import market_errors
from agent.markets.port import Account, Capability, Charge, InstanceKeys, Market, OfferQuery, Terms

Observer = Callable[[str, str, float], None]
"""Receives (operation, outcome, seconds); the outcome is "ok", an error's code, "cancelled" or "bug"."""


class Instrumented:
    """A market that reports its calls."""

    def __init__(self, market: Market, observer: Observer, timer: Callable[[], float]) -> None:
        """Take the market, the observer, and a clock in seconds that never goes back."""
        self._market = market
        self._observer = observer
        self._timer = timer
        self.name = market.name

    @property
    def rows_today(self) -> int | None:
        """Search rows returned since 00:00 UTC; None if the market rations none."""
        rows: int | None = getattr(self._market, "rows_today", None)
        return rows

    async def offers(self, query: OfferQuery) -> Sequence[Offer]:
        """Return offers that may fit."""
        async with self._observed("offers"):
            return await self._market.offers(query)

    def search_delay(self, questions: int) -> float:
        """Return the seconds until so many questions for offers are asked without a wait."""
        return self._market.search_delay(questions)

    async def instances(self) -> Sequence[Instance]:
        """Return every instance of the account."""
        async with self._observed("instances"):
            return await self._market.instances()

    async def instance(self, instance_id: str) -> Instance:
        """Return one instance."""
        async with self._observed("instance"):
            return await self._market.instance(instance_id)

    async def rent(self, offer: Offer, terms: Terms, label: str) -> str:
        """Rent and return the instance id."""
        async with self._observed("rent"):
            return await self._market.rent(offer, terms, label)

    async def rebid(self, instance_id: str, bid: UsdPerHour) -> None:
        """Change the bid."""
        async with self._observed("rebid"):
            await self._market.rebid(instance_id, bid)

    async def resume(self, instance_id: str) -> bool:
        """Start again."""
        async with self._observed("resume"):
            return await self._market.resume(instance_id)

    async def pause(self, instance_id: str) -> None:
        """Stop and keep the disk."""
        async with self._observed("pause"):
            await self._market.pause(instance_id)

    async def release(self, instance_id: str, *, is_gone: bool = False, is_gentle: bool = False) -> None:
        """End for good."""
        async with self._observed("release"):
            await self._market.release(instance_id, is_gone=is_gone, is_gentle=is_gentle)

    async def account(self) -> Account:
        """Return the account."""
        async with self._observed("account"):
            return await self._market.account()

    async def charges(self, since: datetime, until: datetime) -> Sequence[Charge]:
        """Return the market's bill."""
        async with self._observed("charges"):
            return await self._market.charges(since, until)

    async def events(self, since: datetime) -> Sequence[MarketEvent]:
        """Return the market's record of our instances."""
        async with self._observed("events"):
            return await self._market.events(since)

    async def logs(self, instance_id: str, lines: int) -> Sequence[str]:
        """Return the last lines that the container printed."""
        async with self._observed("logs"):
            return await self._market.logs(instance_id, lines)

    def instance_keys(self) -> InstanceKeys | None:
        """Return the registration of ssh keys with instances."""
        return self._market.instance_keys()

    def capabilities(self) -> frozenset[Capability]:
        """Return the present abilities of this market."""
        return self._market.capabilities()

    def rules(self) -> MarketRules:
        """Return what is different here from other markets."""
        return self._market.rules()

    def not_sold(self) -> Mapping[Tenure, str]:
        """Return the tenures that the market does not sell to the account now."""
        return self._market.not_sold()

    def server_time(self) -> datetime | None:
        """Return the time of the market's clock in its last answer."""
        return self._market.server_time()

    async def close(self) -> None:
        """Close connections."""
        await self._market.close()

    @asynccontextmanager
    async def _observed(self, operation: str) -> AsyncIterator[None]:
        began = self._timer()
        outcome = "bug"
        try:
            yield
            outcome = "ok"
        except market_errors.MarketError as error:
            outcome = error.code
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            self._observer(operation, outcome, self._timer() - began)
