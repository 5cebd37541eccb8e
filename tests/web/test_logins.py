"""Guessing the token, over real HTTP: a guesser waits, nobody else does, and the memory of guesses is bounded."""

import re
from pathlib import Path
from typing import Self

import aiohttp
import pytest

from agent.clock import SteppedClock
from agent.web.request_checks.token_guesses import MOST_CLIENTS, MOST_GUESSES, REST_SECONDS, Browsers, Guesses, site
from tests.support.scene import START
from tests.web.page import TOKEN, Served, served


class Client:
    """A browser at an address of its own."""

    def __init__(self, page: Served, address: str) -> None:
        connector = aiohttp.TCPConnector(local_addr=(address, 0))
        self._page = page
        self.link = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.CookieJar(unsafe=True))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.link.close()

    async def log_in(self, token: str, **headers: str) -> tuple[int, str]:
        form = {"token": token}
        async with self.link.post(self._page.url + "/login", data=form, headers=headers) as answer:
            return answer.status, await answer.text()

    async def guess(self, times: int = MOST_GUESSES, **headers: str) -> None:
        for number in range(times):
            assert (await self.log_in(f"guess {number}", **headers))[0] == 403

    async def leave(self) -> None:
        """Log out by the form of the page."""
        async with self.link.get(self._page.url + "/") as answer:
            proof = re.findall(r'name="proof" value="([0-9a-f]{64})"', await answer.text())[0]
        async with self.link.post(self._page.url + "/logout", data={"proof": proof}) as answer:
            assert answer.status == 200


async def test_who_guesses_waits_and_nobody_else(tmp_path: Path) -> None:
    async with served(tmp_path) as page, Client(page, "127.0.0.2") as guesser, Client(page, "127.0.0.3") as owner:
        await guesser.guess()
        status, text = await guesser.log_in(TOKEN)
        assert (status, "wait a minute" in text) == (403, True)
        assert (await owner.log_in(TOKEN))[0] == 200
        page.world.clock.advance(REST_SECONDS + 1)
        assert (await guesser.log_in(TOKEN))[0] == 200


async def test_no_page_of_another_site_can_make_a_browser_guess(tmp_path: Path) -> None:
    async with served(tmp_path) as page, Client(page, "127.0.0.2") as owner:
        await owner.guess(20, Origin="http://evil.example")
        await owner.guess(20, **{"Sec-Fetch-Site": "cross-site"})
        assert (await owner.log_in(TOKEN))[0] == 200


async def test_a_browser_that_logged_in_before_is_not_locked_out_by_its_neighbour(tmp_path: Path) -> None:
    async with served(tmp_path) as page, Client(page, "127.0.0.2") as owner, Client(page, "127.0.0.2") as neighbour:
        assert (await owner.log_in(TOKEN))[0] == 200
        await owner.leave()
        await neighbour.guess(2 * MOST_GUESSES)
        assert (await neighbour.log_in(TOKEN))[0] == 403
        assert (await owner.log_in(TOKEN))[0] == 200
        await owner.guess()
        assert "wait a minute" in (await owner.log_in(TOKEN))[1]


async def test_waiting_is_not_made_longer_by_more_tries(tmp_path: Path) -> None:
    async with served(tmp_path) as page, Client(page, "127.0.0.2") as guesser:
        await guesser.guess()
        page.world.clock.advance(REST_SECONDS - 1)
        await guesser.guess(3)
        page.world.clock.advance(2)
        assert (await guesser.log_in(TOKEN))[0] == 200


def test_what_is_kept_of_guesses_is_bounded_and_a_crowd_gains_no_tries() -> None:
    clock = SteppedClock(START)
    counted = Guesses(clock.monotonic)
    tries = 0
    for number in range(3 * MOST_CLIENTS):
        for _ in range(2 * MOST_GUESSES):
            client = f"10.{number >> 8}.{number & 255}.1"
            if not counted.must_wait(client):
                tries += 1
                counted.was_wrong(client)
    assert tries == MOST_CLIENTS * MOST_GUESSES
    assert counted.must_wait("192.0.2.1")
    clock.advance(REST_SECONDS + 1)
    assert not counted.must_wait("192.0.2.1")
    assert len(counted) == 0


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        (None, ""),
        ("@", ""),
    ],
)
def test_a_client_is_an_ipv4_address_or_an_ipv6_network(address: str | None, client: str) -> None:
    assert site(address) == client


@pytest.mark.parametrize("mark", ["", ".", "a.b", "\udcff.\udcff", "." + "0" * 64])
def test_a_mark_that_another_process_made_is_not_known(mark: str) -> None:
    assert not Browsers().is_known(mark)
    assert not Browsers().is_known(Browsers().mark())
    mine = Browsers()
    assert mine.is_known(mine.mark())
