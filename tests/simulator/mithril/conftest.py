from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.auctions import Auctions, running_auctions


@pytest_asyncio.fixture
async def auctions() -> AsyncIterator[Auctions]:
    async with running_auctions() as running:
        yield running
