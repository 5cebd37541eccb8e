from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.market import Market, running_market


@pytest_asyncio.fixture
async def market() -> AsyncIterator[Market]:
    async with running_market() as running:
        yield running
