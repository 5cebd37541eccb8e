"""What markets of listed prices ask at this moment: `gpubid estimate` asks them, since no daemon may have."""

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.cli.shared import session
from agent.domain.market.price import PriceSample
from agent.markets import market_errors, port, registered_markets
from agent.systemd import CredentialError

if TYPE_CHECKING:
    from agent.config.job_table import JobTable
    from agent.config.settings import Config
    from agent.markets.port import Market

LONGEST_SECONDS = 30.0
"""How long an answer is waited for: a server asks its clouds before it answers."""
Told = tuple[Sequence[PriceSample], Sequence[str]]
"""The prices, and a sentence for each market that told none."""


async def asked(settings: "Config", table: "JobTable") -> Told:
    """Return what the offers for a job ask now, and why a market told nothing. Without such a market none is asked."""
    listed = [each for each in settings.markets if registered_markets.record(each.name).rules.is_listed]
    found: list[PriceSample] = []
    untold: list[str] = []
    for each in listed:
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                found += await _of_market(dataclasses.replace(settings, markets=(each,), workloads=()), table)
        except (market_errors.MarketError, CredentialError, TimeoutError) as error:
            why = str(error) or f"it did not answer within {LONGEST_SECONDS:.0f} s"
            untold.append(f"{each.name} told no price of now, so those of the ledger count: {why}")
    return found, untold


async def _of_market(settings: "Config", table: "JobTable") -> list[PriceSample]:
    async with session.outside(settings, keeps=False) as outside:
        market = outside.connect(settings.markets[0])
        try:
            return await _of_offers(market, table)
        finally:
            await market.close()


async def _of_offers(market: "Market", table: "JobTable") -> list[PriceSample]:
    from agent.domain.market import gpu
    from agent.domain.work.workload import Requirements

    models = tuple(map(gpu.model, table.gpu))
    wants = Requirements(gpus=table.gpus, gpu_models=models, verified_only=False)
    offers = await market.offers(port.OfferQuery(wants, table.disk_gb, gpu_models=models))
    if not offers:
        raise market_errors.Unavailable(next(iter(market.not_sold().values()), "it offers none of these cards now"))
    return [
        PriceSample(row.seen_at, row.market, row.host_id, row.gpu, row.gpus, row.ask, row.floor)
        for row in offers
        if not row.is_price_unknown
    ]
