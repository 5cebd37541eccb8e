"""Celery tasks that survive the loss of their worker. Start any number: `celery --app tasks worker --concurrency 1`.

A task is acknowledged only when it is done. A worker that is killed never does so, and its task comes back to the queue
after VISIBILITY seconds, which must be longer than the longest task.

    BROKER        the queue, such as redis://box:6379/0
    VISIBILITY    seconds after which a task without an end is given to another worker
"""

import os
import time

from celery import Celery

app = Celery("tasks", broker=os.environ["BROKER"])
app.conf.task_acks_late = True
app.conf.task_reject_on_worker_lost = True
app.conf.worker_prefetch_multiplier = 1
app.conf.broker_transport_options = {"visibility_timeout": int(os.environ.get("VISIBILITY", "3600"))}


@app.task
def train(number: int) -> int:
    """Work on one task; in place of a training."""
    time.sleep(float(os.environ.get("TASK_SECONDS", "60")))
    with app.connection_for_write() as link:
        link.default_channel.client.sadd("done", number)
    return number
