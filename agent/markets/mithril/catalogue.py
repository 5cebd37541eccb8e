"""The market's kinds of machines, its pools and their prices, each answer kept for a while.

The market's limits are not published, so a question is not repeated before its answer can have changed. Prices change
at an auction, every two minutes.
"""

from collections.abc import Mapping, Sequence

import structlog

from agent import clock as clocks
from agent.domain.money import UsdPerHour
from agent.markets import market_errors
from agent.markets.mithril import client, names, parse, prices

log = structlog.get_logger("gpubid.mithril")

TYPES_KEPT_SECONDS = 3600.0
POOLS_KEPT_SECONDS = 120.0
PRICES_KEPT_SECONDS = 60.0
"""Half of the time between two auctions."""
OWN_KEPT_SECONDS = 300.0
"""How long prices may still contain an old limit of ours: two auctions, and the minute for which prices are kept."""
_DEAR = UsdPerHour(2**60)
TYPES_ASKED_AGAIN_SECONDS = 300.0
"""The wait before the kinds are requested again because one of them is not known."""


class Catalogue:
    """What one project sees of the market besides its own bids."""

    def __init__(self, endpoints: client.MithrilClient, clock: clocks.Clock) -> None:
        self._client = endpoints
        self._clock = clock
        self._types: tuple[float, Mapping[str, parse.InstanceType]] | None = None
        self._pools: tuple[float, Sequence[names.Pool]] | None = None
        self._prices: dict[names.Pool, tuple[float, prices.Prices | None]] = {}
        self._own: dict[tuple[names.Pool, UsdPerHour], float] = {}

    async def types(self, needed: frozenset[str] = frozenset()) -> Mapping[str, parse.InstanceType]:
        """Return the kinds of machines with GPUs by id, asked for again if one of the `needed` is not known."""
        age = self._age(self._types)
        is_lacking = self._types is not None and not needed <= self._types[1].keys()
        if self._types is None or age >= TYPES_KEPT_SECONDS or (is_lacking and age >= TYPES_ASKED_AGAIN_SECONDS):
            found = parse.instance_types(await self._client.instance_types())
            self._types = self._clock.monotonic(), found
        return self._types[1]

    async def learn_types(self, needed: frozenset[str]) -> Mapping[str, parse.InstanceType]:
        """Return the kinds like `types`; if they cannot be read, the last known ones. Raises: Unauthorized."""
        try:
            return await self.types(needed)
        except market_errors.Unauthorized:
            raise
        except market_errors.MarketError as error:
            # A listing must not wait for the catalogue: whatever has to end is ended by the listing.
            log.debug("types.unread", code=error.code)
        return {} if self._types is None else self._types[1]

    async def pools(self) -> Sequence[names.Pool]:
        """Return every pool that has an auction, the one with the lowest last price first."""
        if self._pools is None or self._age(self._pools) >= POOLS_KEPT_SECONDS:
            rows = parse.auctions(await self._client.availability())
            rows.sort(key=lambda row: prices.of_text(row.last_instance_price) or _DEAR)
            places = dict.fromkeys(row.pool for row in rows if row.pool is not None)
            self._pools = self._clock.monotonic(), tuple(places)
        return self._pools[1]

    async def prices(self, pool: names.Pool) -> prices.Prices | None:
        """Return the present prices of a pool, or None if the market says that it has none now."""
        known = self._prices.get(pool)
        if known is None or self._age(known) >= PRICES_KEPT_SECONDS:
            try:
                found = prices.prices(await self._client.price(pool.instance_type, pool.region))
            except market_errors.NotFound:
                found = None
            known = self._prices[pool] = self._clock.monotonic(), found
        return known[1]

    async def learn_price(self, pool: names.Pool) -> None:
        """Read the prices of a pool; if they cannot be read, the last known ones stay. Raises: Unauthorized."""
        try:
            await self.prices(pool)
        except market_errors.Unauthorized:
            raise
        except market_errors.MarketError as error:
            log.debug("price.unread", pool=pool.offer_id, code=error.code)

    def paid(self, pool: names.Pool | None) -> UsdPerHour | None:
        """Return the last known price that winners of a pool pay, without a request."""
        known = self._prices.get(pool) if pool is not None else None
        return None if known is None or known[1] is None else known[1].paid

    def see_own(self, pool: names.Pool, limit: UsdPerHour) -> None:
        """Remember the limit of a bid of this project that holds a machine of a pool."""
        self._own[pool, limit] = self._clock.monotonic()

    def own_limits(self, pool: names.Pool) -> frozenset[UsdPerHour]:
        """Return the limit prices of this project's bids that may be among the prices of a pool."""
        now = self._clock.monotonic()
        self._own = {key: at for key, at in self._own.items() if now - at < OWN_KEPT_SECONDS}
        return frozenset(limit for of, limit in self._own if of == pool)

    def _age(self, known: tuple[float, object] | None) -> float:
        return self._clock.monotonic() - known[0] if known is not None else 0.0
