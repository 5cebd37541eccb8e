"""One life of the daemon in a story, and the outcome of the story."""

import asyncio
from dataclasses import dataclass

from agent.app import App
from agent.config.settings import Config
from tests.disasters.exchange import Process
from tests.disasters.sight import Broken


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a story: the first point that did not hold, how often each was judged, a digest of every call."""

    broken: Broken | None
    judged: tuple[int, ...]
    cycles: int
    digest: str


@dataclass(slots=True)
class Life:
    """A daemon that runs, and the process it is."""

    app: App
    process: Process
    config: Config


async def cancel_all() -> None:
    """End every task but this one."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
