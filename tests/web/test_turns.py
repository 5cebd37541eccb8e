"""However many ask at once, answers that take the loop come one at a time, and the cycles go on between them."""

import asyncio
import itertools
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from agent.web.request_checks import middlewares
from tests.web.page import served

ASKERS = 20
STEPS_OF_A_CYCLE = 100
STEP_SECONDS = 0.0001


async def test_a_crowd_leaves_the_loop_to_whoever_has_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's clock goes on with its steps and with the answers: a busy machine takes no steps away."""
    steps, worked, began = 0, 0.0, list[int]()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: worked + steps * STEP_SECONDS)

    async def slow(_: web.Request) -> web.Response:
        nonlocal worked
        began.append(steps)
        worked += (STEPS_OF_A_CYCLE + 1) * STEP_SECONDS
        return web.Response()

    handler = middlewares.Turn().taken(slow)
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

    handler = middlewares.Turn().taken(failing)
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
