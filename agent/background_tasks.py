"""Tasks beside the cycles, each under the name of what it is for."""

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any


async def settle(tasks: Mapping[Any, asyncio.Task[Any]]) -> None:
    """Wait until all tasks have ended, whatever their ends."""
    await asyncio.gather(*tasks.values(), return_exceptions=True)


async def end(tasks: MutableMapping[Any, asyncio.Task[Any]]) -> None:
    """Cancel every task, wait until all have ended, and forget them."""
    for task in tasks.values():
        task.cancel()
    await settle(tasks)
    tasks.clear()
