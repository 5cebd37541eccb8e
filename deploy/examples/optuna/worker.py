"""A worker of an Optuna study: it works trials off until as many are complete as are wanted.

Run it in as many slots as you like. A worker that is killed loses no trial: its heartbeat stops, and another worker
enqueues the same trial again. Put your own training in place of `objective`.

    STUDY_URL      the study's database, such as postgresql+psycopg://user:password@box/studies
    STUDY          the study's name
    TRIALS         how many complete trials are wanted
    HEARTBEAT      seconds between two signs of life of a trial; three missing ones fail it
"""

import os
import time

import optuna
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.study import MaxTrialsCallback, StudyDirection
from optuna.trial import TrialState


def objective(trial: optuna.Trial) -> float:
    """Return how bad the suggested numbers are; in place of a training."""
    rate = trial.suggest_float("rate", 0.0, 1.0)
    time.sleep(float(os.environ.get("TRIAL_SECONDS", "60")))
    return (rate - 0.3) ** 2


def storage() -> RDBStorage:
    """Return the study's database, in which each running trial has its heartbeat."""
    heartbeat = int(os.environ.get("HEARTBEAT", "60"))
    return RDBStorage(
        os.environ["STUDY_URL"],
        engine_kwargs={"pool_pre_ping": True},
        heartbeat_interval=heartbeat,
        grace_period=3 * heartbeat,
        heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(max_retry=10),
    )


def main() -> None:
    """Work until the wanted number of trials is complete, also those that other workers began and lost."""
    wanted = int(os.environ["TRIALS"])
    study = optuna.create_study(
        study_name=os.environ["STUDY"],
        storage=storage(),
        direction=StudyDirection.MINIMIZE,
        load_if_exists=True,
    )
    if len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))) < wanted:
        study.optimize(objective, callbacks=[MaxTrialsCallback(wanted)])


if __name__ == "__main__":
    main()
