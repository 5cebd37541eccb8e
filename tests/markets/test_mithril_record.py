"""Mithril's record: its own keys reach the adapter, and doctor says whose figure a disk's price is."""

from decimal import Decimal

import pytest
from pydantic import ValidationError

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors, registered_markets
from agent.markets.mithril.vendor_record import MithrilOptions
from tests.markets import spot_bids
from tests.markets.scene import KEY, LABEL
from tests.markets.wire import Says, Seen, serving

RECORD = registered_markets.record("mithril")


async def test_the_keys_of_the_table_reach_the_adapter(clock: SteppedClock) -> None:
    options = MithrilOptions(project=spot_bids.PROJECT, disk_per_gb_month=Decimal("0.1234"))
    async with serving(spot_bids.project) as wire:
        market = RECORD.connect(wire.url, lambda: KEY, clock, lambda: 0.5, options=options)
        try:
            await market.rent(spot_bids.OFFERED, spot_bids.ORDER, LABEL)
            (row,) = await market.instances()
            finding, quota = await RECORD.findings(market, options, 1)
        finally:
            await market.close()
    assert wire.seen[0].json["project"] == spot_bids.PROJECT
    assert row.gpu_rate == money.per_hour("1.15")
    assert (finding.fix, market.not_sold()) == ("", {})
    assert finding.sentence == "a kept disk is counted at $0.1234 per GB and month, which is your own figure"
    assert quota.sentence.startswith("the quotas of the project cannot be read"), "the answer here is a 404"


async def test_without_the_price_of_a_disk_nothing_is_placed_but_all_is_listed(clock: SteppedClock) -> None:
    async with serving(spot_bids.project) as wire:
        market = RECORD.connect(wire.url, lambda: KEY, clock, lambda: 0.5, options=MithrilOptions(project="proj_1"))
        try:
            with pytest.raises(market_errors.Rejected, match="disk_per_gb_month"):
                await market.rent(spot_bids.OFFERED, spot_bids.ORDER, LABEL)
            assert len(await market.instances()) == 1
            finding, _ = await RECORD.findings(market, MithrilOptions(project="proj_1"), 1)
        finally:
            await market.close()
    assert Tenure.INTERRUPTIBLE in market.not_sold()
    assert "disk_per_gb_month" in finding.fix
    assert {seen.method for seen in wire.seen} == {"GET"}


def _quota(kind: str, used: int, product: str = "Spot") -> dict[str, object]:
    figures = {"total_quantity": 4, "used_quantity": used, "units": "instances"}
    return {"fid": f"q_{kind}", "project": spot_bids.PROJECT, "product_type": product, "name": kind} | figures


@pytest.mark.parametrize(
    ("rows", "sentence", "is_warning"),
    [
        (
            [_quota("a", 3), _quota("b", 0), {"odd": 1}],
            "each of 2 quotas of spot machines leaves room for a bid",
            False,
        ),
        ([_quota("a", 4), _quota("b", 0)], "no further bid is accepted for a (4 of 4)", True),
        ([_quota("a", 4, "Reservations")], "the project shows no quota of spot machines", True),
    ],
)
async def test_doctor_says_which_quota_leaves_no_room(
    clock: SteppedClock, rows: list[dict[str, object]], sentence: str, is_warning: bool
) -> None:
    def answers(seen: Seen) -> Says:
        return Says(rows) if seen.path == "/v2/quotas" else spot_bids.project(seen)

    async with spot_bids.mithril_saying(answers, clock) as (market, wire):
        _, quota = await RECORD.findings(market, MithrilOptions(project=spot_bids.PROJECT), 1)
    assert (quota.sentence, bool(quota.fix)) == (sentence, is_warning)
    assert wire.seen[0].query["project"] == spot_bids.PROJECT


@pytest.mark.parametrize("keys", [{"project": ""}, {"project": "a b"}, {"disk_per_gb_month": -1}, {"disk": 1}])
def test_keys_that_make_no_sense_are_refused(keys: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MithrilOptions.model_validate(keys)
