"""However many ask at once, answers that take the loop come one at a time, and the cycles go on between them."""

import asyncio
import itertools
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from agent.web.guards import guard
from tests.web.page import served

ASKERS = 20
STEPS_OF_A_CYCLE = 100


async def test_a_crowd_leaves_the_loop_to_whoever_has_other_work() -> None:
    steps, began = 0, list[int]()
    loop = asyncio.get_running_loop()

    async def slow(_: web.Request) -> web.Response:
        began.append(steps)
        until = loop.time() + 0.01
        while loop.time() < until:
            pass
        return web.Response()

    handler = guard.Turn().taken(slow)
    asking = asyncio.gather(*(handler(make_mocked_request("GET", "/")) for _ in range(ASKERS)))
    while not asking.done():
        await asyncio.sleep(0)
        steps += 1
    assert len(await asking) == ASKERS
    gaps = [later - earlier for earlier, later in itertools.pairwise(began)]
    assert sorted(gaps)[ASKERS // 2] >= STEPS_OF_A_CYCLE


async def test_one_that_fails_gives_its_turn_on() -> None:
    tries = 0

    async def failing(_: web.Request) -> web.Response:
        nonlocal tries
        tries += 1
        raise web.HTTPNotFound

    handler = guard.Turn().taken(failing)
    answers = [handler(make_mocked_request("GET", "/")) for _ in range(3)]
    assert all(isinstance(each, web.HTTPNotFound) for each in await asyncio.gather(*answers, return_exceptions=True))
    assert tries == 3


async def test_a_crowd_is_answered_whole(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        paths = ("/", "/metrics", "/services", "/events", "/healthz") * 6
        answers = await asyncio.gather(*(page.get(path) for path in paths))
        async with page.client.get(page.url + "/nothing") as missing:
            assert missing.headers["Server"] == "gpubid"
            assert missing.headers["Cache-Control"] == "no-store"
    assert {status for status, _ in answers} == {200}
