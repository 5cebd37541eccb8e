"""Simulated time beside a bucket that answers in real time: it does not pass while a call is under way."""

import asyncio
import threading

from tests.support import loop
from tests.support.bucket_calls import BucketCalls


def test_no_simulated_time_passes_while_a_bucket_is_asked_however_long_it_takes() -> None:
    async def asked(on_loop: loop.Loop) -> tuple[str, float, float]:
        calls = BucketCalls()
        on_loop.stand_still(lambda: calls.count > 0)
        answer: asyncio.Future[str] = on_loop.create_future()

        async def ask() -> str:
            with calls.one():
                async with asyncio.timeout(10):
                    return await answer

        beside = asyncio.create_task(ask())
        asleep = asyncio.create_task(asyncio.sleep(5))
        threading.Timer(0.05, on_loop.call_soon_threadsafe, (answer.set_result, "here")).start()
        await calls.settle()
        settled_at = on_loop.time()
        await asleep
        return await beside, settled_at, on_loop.time()

    assert loop.run(asked) == ("here", 0.0, 5.0)
