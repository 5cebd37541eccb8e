"""The result of every search is kept, and each look can be repeated; old results are deleted."""

from datetime import timedelta

from agent.domain.market.offer import Offer
from agent.ledger.store import Ledger
from tests.support import builders
from tests.support.builders import NOW

DAY = timedelta(days=1)


def rows(at_days: float, *numbers: int) -> list[Offer]:
    return [builders.offer(number, seen_at=NOW + at_days * DAY) for number in numbers]


async def test_looks_and_facts_come_back_as_they_were_seen(ledger: Ledger) -> None:
    for at, offers in ((0.0, rows(0, 1, 2)), (0.5, rows(0.5, 2))):
        async with ledger.transaction() as tx:
            tx.observe_offers(offers)
        assert at >= 0
    reader = await ledger.reader()
    assert [look.slices for look in await reader.looks()] == [(("h1", 1), ("h2", 1)), (("h2", 1),)]
    assert [look.at for look in await reader.looks(since=NOW + 0.1 * DAY)] == [NOW + 0.5 * DAY]
    first, second = sorted(await reader.slices(), key=lambda each: each.host_id)
    (shown,) = rows(0, 1)
    assert (first.owner_id, first.dlperf, first.storage_micros_per_gb_month) == (
        shown.owner_id, shown.dlperf, shown.storage_micros_per_gb_month,
    )  # fmt: skip
    assert first.ask is first.floor is None
    assert second.seen_at == NOW + 0.5 * DAY


async def test_nothing_seen_writes_nothing(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        tx.observe_offers([])
        assert not tx.work


async def test_what_is_older_than_raw_prices_is_given_up(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        tx.observe_offers(rows(-20, 1))
        tx.observe_offers(rows(-1, 2))
    await ledger.tidy()
    reader = await ledger.reader()
    assert [look.slices for look in await reader.looks()] == [(("h2", 1),)]
    assert [each.host_id for each in await reader.slices()] == ["h2"]
