import pytest

from agent.clock import SteadyClock
from agent.domain.market.market_rules import ASSUMED, Places
from agent.markets import registered_markets
from agent.markets.runpod.rules import RULES as RUNPOD
from agent.markets.vast.rules import RULES as VAST
from agent.observe.poller import Poller
from tests.markets.benches import BENCHES


@pytest.mark.parametrize("name", BENCHES)
async def test_decisions_are_told_the_rules_of_each_market_and_its_offers_keep_them(name: str) -> None:
    async with BENCHES[name]() as bench:
        poller = Poller(bench.market, SteadyClock(bench.clock), "", lambda _: "")
        assert poller.view.rules is bench.market.rules()
        assert poller.view.rules is registered_markets.record(name).rules
        offers = await bench.offers()
        are_pools = {offer.host.is_pool for offer in offers}
        assert are_pools == {poller.view.rules.places is Places.POOLS}


def test_a_stopped_pod_waits_for_a_call_and_an_outbid_instance_at_vast_does_not() -> None:
    assert (VAST.starts_by_itself, RUNPOD.starts_by_itself) == (True, False)
    assert VAST == ASSUMED, "what was recorded before markets told their rules was all recorded there"
