"""The shipped Celery workers on a real Redis, both of Debian: a worker killed with SIGKILL loses no task."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.domain.slot_demand import Demand, DemandFrom
from agent.observe.demand import demand_sources
from tests.support import ports
from tests.support.programs import until

EXAMPLE = Path(__file__).parents[2] / "deploy" / "examples" / "celery"
PYTHON, CELERY = "/usr/bin/python3", "/usr/bin/celery"
TASKS = 5
FILL = f"import tasks\nfor number in range({TASKS}):\n    tasks.train.delay(number)\n"

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        shutil.which("redis-server") is None or not Path(CELERY).exists(),
        reason="Redis or Celery is not installed (Debian's packages redis-server and celery)",
    ),
]


@contextlib.asynccontextmanager
async def program(*words: str, **told: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program with only these variables, and end it with all that it has begun."""
    known = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "VISIBILITY": "5", "TASK_SECONDS": "1", **told}
    running = await asyncio.create_subprocess_exec(
        *words, env=known, cwd=EXAMPLE, start_new_session=True, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, 9)
        await running.wait()


async def test_a_worker_that_is_killed_loses_no_task(tmp_path: Path) -> None:
    port = ports.free()
    broker, file = f"redis://127.0.0.1:{port}/0", tmp_path / "broker"
    file.write_text(f"{broker}\n")
    asked = Demand(0, DemandFrom.COMMAND, command=(PYTHON, str(EXAMPLE / "backlog.py"), str(file)))
    worker = (PYTHON, "-m", "celery", "--app", "tasks", "worker", "--concurrency", "1", "--loglevel", "ERROR")
    redis = ("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path))
    async with program(*redis):
        await until(lambda: _backlog(asked, 0), "an empty queue")
        async with program(PYTHON, "-c", FILL, BROKER=broker) as filling:
            assert await filling.wait() == 0
        assert await demand_sources.tasks(asked) == TASKS
        async with program(*worker, BROKER=broker):
            await until(lambda: _backlog(asked, TASKS - 1), "the first task done")
        # Killed in the middle of the second one, which is still among those that are wanted.
        assert await demand_sources.tasks(asked) == TASKS - 1
        async with program(*worker, BROKER=broker):
            await until(lambda: _backlog(asked, 0), "all tasks done")
        assert await _done(port) == TASKS


async def _backlog(asked: Demand, number: int) -> bool:
    try:
        return await demand_sources.tasks(asked) == number
    except demand_sources.DemandUnknownError:
        return False


async def _done(port: int) -> int:
    """Return how many numbers the workers have written."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"SCARD done\r\n")
    answer = await reader.readline()
    writer.close()
    return int(answer.strip().lstrip(b":"))
