"""Signs of life of a trial, in the study's storage: the trial of a killed process is tried again.

Invariants:
1. A trial without a sign of life for GRACE_SECONDS, by the storage's own clock, counts as failed. Its numbers are tried
   again, RETRIES times at most, because a trial may also be what kills its processes.
2. A process that wakes after that finds its trial finished, and drops its result.
"""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning

BEAT_SECONDS = 20
GRACE_SECONDS = 120
RETRIES = 3


def storage(url: str, options: dict[str, Any]) -> optuna.storages.RDBStorage:
    """Return the storage at an address, with the options of its engine, in which trials give signs of life."""
    with quietly():
        return optuna.storages.RDBStorage(
            url,
            engine_kwargs=options,
            heartbeat_interval=BEAT_SECONDS,
            grace_period=GRACE_SECONDS,
            heartbeat_stale_trial_callback=optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=RETRIES),
        )


def requeue_stale(study: optuna.Study) -> None:
    """Fail the trials of killed processes, and let their numbers wait for the next process that asks."""
    with quietly():
        optuna.storages.fail_stale_trials(study)


@contextmanager
def beating(where: optuna.storages.RDBStorage, trial: optuna.Trial) -> Iterator[None]:
    """Give signs of life of a trial while its score is computed."""
    number, ended = trial._trial_id, threading.Event()  # noqa: SLF001 - Optuna asks for it and has no other name for it

    def beat() -> None:
        while not ended.wait(BEAT_SECONDS):
            # A missed beat is no error: the trial's own writes report a storage that is gone.
            with suppress(Exception):
                where.record_heartbeat(number)

    # The first one comes before any work: a trial without any never counts as stale.
    where.record_heartbeat(number)
    thread = threading.Thread(target=beat, name="trial-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def quietly() -> Iterator[None]:
    """Hide Optuna's notes that heartbeats may change, and that its own loop gives them. Here `beating` gives them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        warnings.filterwarnings("ignore", message="Heartbeat of storage", category=UserWarning)
        yield
