"""The shipped Optuna workers on a real PostgreSQL: a worker killed with SIGKILL loses no trial."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import TrialState

from agent.domain.slot_demand import Demand, DemandFrom
from agent.observe.demand import demand_sources
from tests.support import ports, postgres
from tests.support.programs import until

EXAMPLE = Path(__file__).parents[2] / "deploy" / "examples" / "optuna"
TRIALS = 8

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (Debian's package postgresql)"),
]


@contextlib.asynccontextmanager
async def program(url: str, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    told = {"STUDY_URL": url, "STUDY": "sweep", "TRIALS": str(TRIALS), "HEARTBEAT": "1", "TRIAL_SECONDS": "1"}
    running = await asyncio.create_subprocess_exec(sys.executable, *words, env={**os.environ, **told}, cwd=EXAMPLE)
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            running.kill()
        await running.wait()


async def test_a_worker_that_is_killed_loses_no_trial() -> None:
    with postgres.running() as url, stored(url) as storage:
        study = optuna.create_study(study_name="sweep", storage=storage)
        rates = [number / TRIALS for number in range(TRIALS)]
        for rate in rates:
            study.enqueue_trial({"rate": rate})
        port = ports.free()
        asked = Demand(0, DemandFrom.HTTP, f"http://127.0.0.1:{port}/backlog")
        async with program(url, "backlog.py", str(port)):
            await until(lambda: _answers(asked, TRIALS), "the whole backlog")
            async with program(url, "worker.py") as killed, program(url, "worker.py") as other:
                await until(lambda: len(_trials(study, TrialState.RUNNING)) == 2, "two trials at work")
                killed.kill()
                assert await other.wait() == 0
            # What the killed worker had begun is begun again once its heartbeat counts as stopped.
            async with program(url, "worker.py") as last:
                assert await last.wait() == 0
            await until(lambda: _answers(asked, 0), "an empty backlog")
        done = [trial.params["rate"] for trial in _trials(study, TrialState.COMPLETE)]
        assert set(rates) <= set(done)
        assert _trials(study, TrialState.FAIL), "the killed one"


@contextlib.contextmanager
def stored(url: str) -> Iterator[RDBStorage]:
    """Open the study's database, and close its connections."""
    storage = RDBStorage(url)
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _trials(study: optuna.Study, state: TrialState) -> list[optuna.trial.FrozenTrial]:
    return study.get_trials(states=(state,))


async def _answers(asked: Demand, number: int) -> bool:
    try:
        return await demand_sources.tasks(asked) == number
    except demand_sources.DemandUnknownError:
        return False
