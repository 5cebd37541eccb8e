"""Point 5 for leases that no look by id has shown: nothing may be written to them (rule 18)."""

from collections.abc import Iterable, Iterator
from unittest import mock

import pytest
import structlog

from agent.domain.fleet import MarketView
from agent.observe.poller import Poller
from tests.disasters import play, seed_runs
from tests.disasters.story import Deed, Story, Strike, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


THROTTLED = Strike("runpod", "look", 2, "throttled", 12, 600.0)
WORKS = (Work("w3", "batch", "hedged", 2),)
"""One of the two leases is proven before the looks are throttled; the kill ends that one at once."""


STORY = Story(93621, ("runpod",), WORKS, 44.0, 0.0, 0, (THROTTLED,), (Deed(7, "kill"),))


def test_what_the_market_forbids_to_look_at_bills_on_until_it_may_be_looked_at() -> None:
    assert play.play(STORY).broken is None


def test_what_is_never_looked_at_although_the_market_allows_it_is_found() -> None:
    look_at = Poller.look_at

    async def blind(self: Poller, instance_ids: Iterable[str]) -> MarketView:
        return await look_at(self, () if self.view.listings > 1 else instance_ids)

    with mock.patch.object(Poller, "look_at", blind):
        broken = play.play(STORY).broken
    assert broken is not None
    assert broken.point == 5
