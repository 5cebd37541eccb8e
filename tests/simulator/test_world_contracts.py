"""Items 9 to 15 of the simulator's checklist, as far as the world and not its surface keeps them."""

import pytest

from agent.simulator.instances.container_state import Container
from agent.simulator.market_model import Refusal
from agent.simulator.vast.model import EndCause, NoticeKind, RentTerms, StopCause
from tests.support import quiet


def test_item_9_a_bid_below_the_floor_leaves_a_stopped_contract_that_bills_its_disk() -> None:
    market = quiet.world()
    contract = quiet.rent(market, quiet.a_slice(market), 0.99)
    assert contract.is_underbid
    assert quiet.shown(contract) == (Container.NONE, False, False, False, False)
    market.advance_to(market.now + 3600)
    assert market.billing_now() == [contract.contract_id]
    market.charged_total()
    assert contract.charged == {"gpu": 0.0, "disk": pytest.approx(market.disk_rate(contract)), "bandwidth": 0.0}


def test_item_9_a_bid_of_exactly_the_floor_runs() -> None:
    market = quiet.world()
    contract = quiet.rent(market, quiet.a_slice(market), 1.0)
    assert contract.holds_gpu
    assert not contract.is_underbid


def test_item_9_no_bid_rents_on_demand_and_an_unknown_offer_is_refused() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = market.create(slice_.offer_id, RentTerms(10, "alpine"), bid=None)
    assert not contract.is_bid
    assert market.gpu_rate(contract) == market.ask(slice_)
    with pytest.raises(Refusal) as refusal:
        market.create(1, RentTerms(10, "alpine"), bid=0.1)
    assert refusal.value.code == Refusal.NO_SUCH_ASK


@pytest.mark.parametrize("bids", [(1.2, 1.5), (None, 1.5), (None, None), (1.2, None)])
def test_item_9_a_second_rent_of_a_held_offer_is_refused(bids: tuple[float | None, float | None]) -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    floor = market.host_floor(slice_)
    first, second = (None if bid is None else bid * floor for bid in bids)
    market.create(slice_.offer_id, RentTerms(10, "alpine"), bid=first)
    with pytest.raises(Refusal) as refusal:
        market.create(slice_.offer_id, RentTerms(10, "alpine"), bid=second)
    assert refusal.value.code == Refusal.ASK_TAKEN
    assert len(market.contracts) == 1


def test_item_9_cancel_unavailable_refuses_instead_of_parking() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    with pytest.raises(Refusal) as refusal:
        quiet.rent(market, slice_, 0.5, cancel_unavailable=True)
    assert refusal.value.code == Refusal.ASK_TAKEN
    assert not market.contracts


def test_item_9_without_credit_nothing_is_rented_or_started() -> None:
    market = quiet.world(credit=0.0)
    with pytest.raises(Refusal) as refusal:
        quiet.rent(market, quiet.a_slice(market))
    assert refusal.value.code == Refusal.INSUFFICIENT_CREDIT
    assert not market.contracts


@pytest.mark.parametrize("bid", [0.0005, 129.0])
def test_item_9_a_bid_out_of_range_is_refused(bid: float) -> None:
    market = quiet.world()
    with pytest.raises(Refusal) as refusal:
        market.create(quiet.a_slice(market).offer_id, RentTerms(10, "alpine"), bid=bid)
    assert refusal.value.code == Refusal.BAD_PRICE


def test_item_10_a_bid_pays_itself_capped_at_the_ask_unless_the_cap_is_off() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = quiet.rent(market, slice_, 1.1)
    assert market.gpu_rate(contract) == contract.bid
    market.change_bid(contract.contract_id, market.ask(slice_) * 2)
    assert market.gpu_rate(contract) == market.ask(slice_)
    uncapped = quiet.world(is_bid_capped=False)
    slice_ = quiet.a_slice(uncapped)
    contract = uncapped.create(slice_.offer_id, RentTerms(10, "alpine"), bid=uncapped.ask(slice_) * 2)
    assert uncapped.gpu_rate(contract) == uncapped.ask(slice_) * 2


def test_item_11_outbid_takes_the_gpus_and_the_container_keeps_the_disk_and_tells_the_winners_bid() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = quiet.run(market, quiet.rent(market, slice_))
    market.add_rival(slice_.machine_id, slice_.num_gpus, 0.5)
    assert quiet.shown(contract) == (Container.EXITED, False, False, False, False)
    assert contract.stop_cause is StopCause.OUTBID
    assert contract.is_ready
    notice = market.inbox[-1]
    assert (notice.kind, notice.contract_id, notice.price) == (NoticeKind.OUTBID, contract.contract_id, contract.bid)
    assert notice.new_floor == 0.5
    assert market.billing_now() == [contract.contract_id]


def test_item_11_a_renter_on_demand_displaces_any_bid_and_is_told_as_outbid_at_the_ask() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = quiet.run(market, quiet.rent(market, slice_))
    market.change_bid(contract.contract_id, 30.0)
    market.add_rival(slice_.machine_id, on_demand=True)
    assert contract.stop_cause is StopCause.DISPLACED
    assert market.inbox[-1].kind is NoticeKind.OUTBID
    assert market.inbox[-1].new_floor == round(market.ask(slice_), 2)


def test_item_11_one_displaces_oneself_through_a_sibling() -> None:
    market = quiet.world(hosts=200)
    small = quiet.a_slice(market, siblings=True)
    contract = quiet.rent(market, small, 1.05)
    whole = next(
        other
        for other in market.slices.values()
        if other.machine_id == small.machine_id and other.num_gpus == small.host.gpu_count > 1
    )
    second = market.create(whole.offer_id, RentTerms(10, "alpine"), bid=market.host_floor(whole) * 1.5)
    assert second.holds_gpu
    assert contract.stop_cause is StopCause.OUTBID


def test_item_12_an_outbid_contract_resumes_by_itself_when_the_slice_is_free_without_another_pull() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = quiet.run(market, quiet.rent(market, slice_))
    pulled = contract.down_gb
    rival = market.add_rival(slice_.machine_id, slice_.num_gpus, 0.9)
    market.advance_to(market.now + 600)
    assert not contract.holds_gpu
    market.remove_rival(rival)
    assert not contract.holds_gpu
    market.advance_to(market.now + 11)
    assert contract.holds_gpu
    assert market.inbox[-1].kind is NoticeKind.RESUMED
    market.advance_to(market.now + 25)
    assert contract.container is Container.RUNNING
    market.charged_total()
    assert contract.down_gb == pulled


def test_item_12_a_raised_bid_wins_back_what_a_bidder_took_but_not_what_was_taken_on_demand() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = quiet.run(market, quiet.rent(market, slice_))
    rival = market.add_rival(slice_.machine_id, slice_.num_gpus, 0.9)
    market.change_bid(contract.contract_id, 0.9)
    market.advance_to(market.now + 60)
    assert not contract.holds_gpu, "between equal bids the one that runs stays"
    market.change_bid(contract.contract_id, 0.91)
    market.advance_to(market.now + 60)
    assert contract.holds_gpu
    market.remove_rival(rival)
    market.add_rival(slice_.machine_id, on_demand=True)
    market.change_bid(contract.contract_id, 30.0)
    market.advance_to(market.now + 600)
    assert not contract.holds_gpu


def test_item_12_lowering_a_bid_below_the_floor_parks_the_contract() -> None:
    market = quiet.world()
    contract = quiet.run(market, quiet.rent(market, quiet.a_slice(market)))
    market.change_bid(contract.contract_id, 0.001)
    assert not contract.holds_gpu
    market.advance_to(market.now + 3600)
    assert not contract.holds_gpu


def test_item_12_a_start_on_taken_gpus_is_queued_and_runs_later_and_a_stop_cancels_it() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = quiet.run(market, quiet.rent(market, slice_))
    market.stop(contract.contract_id)
    rival = market.add_rival(slice_.machine_id, on_demand=True)
    assert market.start(contract.contract_id) is False
    assert contract.status == "queued"
    market.stop(contract.contract_id)
    market.remove_rival(rival)
    market.advance_to(market.now + 600)
    assert contract.status == "stopped"
    rival = market.add_rival(slice_.machine_id, on_demand=True)
    assert market.start(contract.contract_id) is False
    market.remove_rival(rival)
    market.advance_to(market.now + 60)
    assert contract.status == "running"
    assert NoticeKind.RESUMED in quiet.kinds(market)


def test_item_12_start_runs_at_once_where_the_gpus_are_free() -> None:
    market = quiet.world()
    contract = quiet.run(market, quiet.rent(market, quiet.a_slice(market)))
    market.stop(contract.contract_id)
    market.advance_to(market.now + 600)
    assert contract.status == "stopped", "what a renter stopped does not resume by itself"
    assert market.start(contract.contract_id) is True
    assert contract.holds_gpu


def test_item_13_stopped_outbid_displaced_broke_and_expired_look_alike() -> None:
    seen = []
    for fate in ("user", "outbid", "displaced", "credit", "expired"):
        market = quiet.world()
        slice_ = quiet.a_slice(market)
        slice_.host.end_time = market.now + 7200
        contract = quiet.run(market, quiet.rent(market, slice_))
        if fate == "user":
            market.stop(contract.contract_id)
        elif fate == "outbid":
            market.add_rival(slice_.machine_id, slice_.num_gpus, 5.0)
        elif fate == "displaced":
            market.add_rival(slice_.machine_id, on_demand=True)
        elif fate == "credit":
            market.set_credit(0.0)
            market.advance_to(market.now + 300)
        else:
            market.advance_to(market.now + 7200)
        assert contract.stop_cause is StopCause(fate)
        seen.append(quiet.shown(contract))
    assert len(set(seen)) == 1


def test_item_13_an_expired_contract_cannot_start_and_is_deleted_two_days_later() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    slice_.host.end_time = market.now + 3600
    contract = quiet.run(market, quiet.rent(market, slice_))
    market.advance_to(market.now + 3601)
    with pytest.raises(Refusal) as refusal:
        market.start(contract.contract_id)
    assert refusal.value.code == Refusal.EXPIRED
    market.advance_to(market.now + 48 * 3600)
    assert contract.end_cause is EndCause.EXPIRED
    assert not market.billing_now()


def test_item_13_a_silent_host_charges_nothing_and_comes_back_as_it_was() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = quiet.run(market, quiet.rent(market, slice_))
    before = market.charged_total()
    market.set_host_offline(slice_.machine_id, market.now + 1800)
    assert contract.status == "offline"
    assert contract.holds_gpu
    assert not market.billing_now()
    market.advance_to(market.now + 1799)
    assert market.charged_total() == before
    assert slice_ not in set(market.listed())
    market.advance_to(market.now + 2)
    assert contract.status == "running"
    assert quiet.kinds(market)[-2:] == [NoticeKind.OFFLINE, NoticeKind.ONLINE]
    assert market.billing_now() == [contract.contract_id]


def test_item_13_a_host_that_falls_silent_while_the_image_comes_in_goes_on_with_the_pull_later() -> None:
    market = quiet.world()
    contract = quiet.rent(market, quiet.a_slice(market), image="pytorch/pytorch")
    market.advance_to(market.now + 20)
    market.set_host_offline(contract.slice.machine_id, market.now + 600)
    market.advance_to(market.now + 590)
    share = contract.pulled_share
    assert 0 < share < 1
    market.advance_to(market.now + 11)
    assert contract.pulled_share == share
    quiet.run(market, contract)
    market.charged_total()
    assert contract.down_gb == pytest.approx(contract.image_gb, rel=0.01)


def test_item_13_a_host_that_is_gone_takes_its_contracts_with_it() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = quiet.run(market, quiet.rent(market, slice_))
    market.set_host_gone(slice_.machine_id)
    assert contract.end_cause is EndCause.HOST_GONE
    assert not market.billing_now()
    with pytest.raises(Refusal) as refusal:
        market.contract(contract.contract_id)
    assert refusal.value.code == Refusal.NO_SUCH_CONTRACT
    with pytest.raises(Refusal):
        market.create(slice_.offer_id, RentTerms(10, "alpine"), bid=1.0)
