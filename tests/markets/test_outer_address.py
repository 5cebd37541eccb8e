"""Files of a market: from the public internet by https, and from this machine only if the market is here too."""

import pytest

from agent.clock import SteppedClock
from agent.markets import market_errors, outer_address
from agent.markets.http_exchange import HttpExchange, NeverLeft, Request
from tests.markets.test_transport import linked
from tests.markets.wire import Says, serving

MARKET = "https://market.example"
HERE = "http://127.0.0.1:8100"


@pytest.mark.parametrize(
    "url",
    [
        "http://files.example/log",
        "ftp://files.example/log",
        "file:///etc/passwd",
        "https://name:secret@files.example/log",
        "https://localhost/log",
        "https://127.0.0.1/log",
        "https://10.1.2.3/log",
        "https://172.16.0.1/log",
        "https://192.168.1.1/log",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/log",
        "https://0.0.0.0/log",
        "https://224.0.0.1/log",
        "https://[::1]/log",
        "https://[::ffff:10.0.0.1]/log",
        "https://[fe80::1]/log",
        "https://[fd00::1]/log",
        "https:///log",
        "log",
        "https://[broken/log",
    ],
)
def test_an_address_that_a_market_may_not_name_is_refused(url: str) -> None:
    assert outer_address.refusal(url, MARKET)


@pytest.mark.parametrize(
    ("url", "market"),
    [
        ("https://files.example/log?a=b", MARKET),
        ("https://8.8.8.8/log", MARKET),
        ("https://[2001:4860:4860::8888]/log", MARKET),
        ("http://127.0.0.1:9000/log", HERE),
        ("http://localhost:9000/log", HERE),
        ("http://10.1.2.3/log", "http://10.1.2.3:8080/api"),
    ],
)
def test_a_public_address_and_the_markets_own_host_are_fetched(url: str, market: str) -> None:
    assert not outer_address.refusal(url, market)


def test_a_market_on_this_machine_names_no_other_machine_of_the_network() -> None:
    assert outer_address.refusal("http://10.1.2.3/log", HERE)


@pytest.mark.parametrize("name", ["localhost"])
async def test_a_name_is_checked_once_it_is_resolved(name: str) -> None:
    async with serving(Says({})) as server:
        port = server.url.rpartition(":")[2]
        exchange = HttpExchange(5.0, MARKET)
        try:
            with pytest.raises(NeverLeft, match="public internet"):
                await exchange.first(Request("GET", f"http://{name}:{port}/log"), 100)
        finally:
            await exchange.close()
        assert not server.seen
        local = HttpExchange(5.0, server.url)
        try:
            assert (await local.first(Request("GET", f"http://{name}:{port}/log"), 100)).is_ok
        finally:
            await local.close()
        assert len(server.seen) == 1


async def test_nothing_is_sent_to_an_address_that_is_refused(clock: SteppedClock) -> None:
    async with serving(Says({})) as server, linked(server.url, clock) as link:
        with pytest.raises(market_errors.Malformed, match="it is not https; nothing is fetched"):
            await link.fetch("http://files.example/log", 100)
    assert not server.seen
