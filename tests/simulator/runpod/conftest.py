from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.pods import Pods, running_pods


@pytest_asyncio.fixture
async def pods() -> AsyncIterator[Pods]:
    async with running_pods() as running:
        yield running
