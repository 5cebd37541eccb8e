"""The output of the run before the present one, read from a real S3 server."""

import asyncio
import gzip
from datetime import timedelta

import pytest

from agent.web.reading import bucket_logs
from agent.web.reading.bucket_logs import BucketLog
from tests.support import builders, s3_server
from tests.support.s3_server import SECRET

FOLDER = "fleet/train/0/1/logs/L1"
BEGAN = builders.NOW - timedelta(minutes=1)
HOURS_AGO = (30, 20)


@pytest.mark.parametrize(
    ("runs", "newest", "said"),
    [
        pytest.param(3, None, "of 20 h ago", id="nothing of the present one yet"),
        pytest.param(2, None, "of 30 h ago", id="as many as ran"),
        pytest.param(3, 0.0, "of 20 h ago", id="all there"),
        pytest.param(4, 0.0, "of 20 h ago", id="one left no output"),
    ],
)
async def test_the_previous_run_is_the_last_one_that_is_over(runs: int, newest: float | None, said: str) -> None:
    """For two minutes after a return from an outbid the run before the lost one was shown."""
    lease = builders.lease(guard_run=1, runs=runs, run_since=BEGAN)
    with s3_server.served() as server:
        for hours in (*HOURS_AGO, *([] if newest is None else [newest])):
            began = int((BEGAN - timedelta(hours=hours)).timestamp())
            name = f"train/{FOLDER}/{began:010d}-000001.gz"
            await asyncio.to_thread(server.put, name, gzip.compress(f"of {hours:g} h ago\n".encode()))
        wanted = BucketLog(lease, server.place(), FOLDER, is_running=True)
        lines, trouble = await bucket_logs.read(wanted, 100, lambda _: SECRET, is_previous=True)
    assert (lines[-1], trouble) == (said, "")
