"""Items 14 and 15 of the simulator's checklist, and other events of a container, as the world keeps them."""

import pytest

from agent.simulator.instances.container_state import Container
from agent.simulator.market_model import Refusal
from agent.simulator.vast.model import NoticeKind, RentTerms, StopCause
from tests.support import levers, quiet


def test_item_14_an_image_is_pulled_before_the_container_runs_and_costs_traffic_but_no_gpu() -> None:
    market = quiet.world()
    contract = quiet.rent(market, quiet.a_slice(market), image="pytorch/pytorch")
    assert quiet.shown(contract)[0] is Container.NONE
    market.advance_to(market.now + 9)
    assert quiet.shown(contract)[0] is Container.LOADING
    loading_until = contract.loading_until
    assert loading_until is not None
    market.advance_to(loading_until - 1)
    market.charged_total()
    assert contract.charged["gpu"] == 0.0
    assert contract.charged["bandwidth"] > 0.0
    market.advance_to(loading_until + 1)
    assert quiet.shown(contract)[0] is Container.RUNNING
    assert quiet.kinds(market) == [NoticeKind.CREATED, NoticeKind.STARTED]
    market.charged_total()
    assert contract.charged["gpu"] > 0.0
    assert contract.charged["bandwidth"] == pytest.approx(contract.image_gb * contract.host.down_price, rel=0.01)


@pytest.mark.nightly
def test_item_14_a_pull_takes_seconds_to_hours() -> None:
    market = quiet.world(hosts=600, credit=1e6)
    rented = set()
    for slice_ in list(market.listed()):
        if slice_.gpus and slice_.machine_id not in rented:
            rented.add(slice_.machine_id)
            quiet.rent(market, slice_, 1.01, image="vllm/vllm-openai", disk_gb=10)
    market.advance_to(market.now + 4 * 3600)
    took = sorted(
        contract.first_started - contract.created
        for contract in market.live_contracts()
        if contract.first_started is not None
    )
    print("pull seconds: median", took[len(took) // 2], "extremes", took[0], took[-1])
    assert len(took) > 500
    assert took[0] < 300
    assert 3600 < took[-1] <= 10_640
    assert took[len(took) // 2] < 900


def test_item_14_a_failed_pull_leaves_a_created_container_an_error_and_a_stopped_contract() -> None:
    market = quiet.world()
    contract = quiet.rent(market, quiet.a_slice(market), image="pytorch/pytorch")
    market.advance_to(market.now + 12)
    market.fail_pull(contract.contract_id)
    assert quiet.shown(contract) == (Container.CREATED, False, False, False, False)
    assert contract.pull_error
    assert market.inbox[-1].kind is NoticeKind.CONTAINER_ERROR
    market.calm_pulls()
    assert market.start(contract.contract_id)
    quiet.run(market, contract)
    assert contract.pull_error is None


def test_item_14_a_stuck_pull_hangs_without_charging_gpus_until_the_weather_clears() -> None:
    market = quiet.world()
    market.stick_loading()
    contract = quiet.rent(market, quiet.a_slice(market))
    market.advance_to(market.now + 86_400)
    assert contract.container is Container.LOADING
    market.charged_total()
    assert contract.charged["gpu"] == 0.0
    market.calm_pulls()
    quiet.run(market, contract)


def test_item_14_the_create_start_race_leaves_it_stopped_until_start_is_sent_again() -> None:
    market = quiet.world(race_probability=1.0)
    contract = quiet.rent(market, quiet.a_slice(market), image="pytorch/pytorch")
    assert contract.holds_gpu
    market.advance_to(market.now + 3600)
    assert quiet.shown(contract) == (Container.LOADING, False, False, False, False)
    assert contract.stop_cause is StopCause.RACE
    assert market.start(contract.contract_id)
    quiet.run(market, contract)


def test_item_15_the_end_of_a_contract_is_the_end_of_the_hosts_listing() -> None:
    market = quiet.world()
    contract = quiet.rent(market, quiet.a_slice(market))
    assert contract.end_time == contract.host.end_time


def test_a_contract_outbid_while_it_boots_keeps_what_it_pulled() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = quiet.rent(market, slice_, image="pytorch/pytorch")
    market.advance_to(market.now + 20)
    rival = market.add_rival(slice_.machine_id, slice_.num_gpus, 5.0)
    assert 0 < contract.pulled_share < 1
    assert contract.first_started is None
    market.remove_rival(rival)
    quiet.run(market, contract)
    market.charged_total()
    assert contract.down_gb == pytest.approx(contract.image_gb, rel=0.01)


def test_a_container_that_exits_keeps_its_gpus_and_goes_on_billing() -> None:
    market = quiet.world()
    contract = quiet.run(market, quiet.rent(market, quiet.a_slice(market)))
    levers.exit_container(market, contract.contract_id, restarts_after=60.0)
    assert quiet.shown(contract) == (Container.EXITED, True, True, False, False)
    assert contract.status == "exited"
    market.advance_to(market.now + 61)
    assert contract.container is Container.RUNNING


@pytest.mark.parametrize(("call", "through"), [("reboot", Container.REBOOTING), ("recycle", Container.RECYCLING)])
def test_reboot_and_recycle_keep_the_gpus(call: str, through: Container) -> None:
    market = quiet.world()
    contract = quiet.run(market, quiet.rent(market, quiet.a_slice(market)))
    getattr(market, call)(contract.contract_id)
    assert quiet.shown(contract) == (through, True, True, False, False)
    market.advance_to(market.now + 21)
    assert contract.container is Container.RUNNING


@pytest.mark.parametrize("call", ["reboot", "recycle"])
def test_reboot_and_recycle_wake_nothing_that_has_no_gpus(call: str) -> None:
    market = quiet.world()
    contract = quiet.run(market, quiet.rent(market, quiet.a_slice(market)))
    market.stop(contract.contract_id)
    getattr(market, call)(contract.contract_id)
    market.advance_to(market.now + 600)
    assert quiet.shown(contract) == (Container.EXITED, False, False, False, False)


def test_destroy_frees_the_gpus_and_stops_every_charge() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = quiet.run(market, quiet.rent(market, slice_))
    market.destroy(contract.contract_id)
    total = market.charged_total()
    market.advance_to(market.now + 86_400)
    assert market.charged_total() == total
    assert market.true_floor(slice_) == market.host_floor(slice_)
    with pytest.raises(Refusal):
        market.destroy(contract.contract_id)


def test_a_bid_can_be_changed_on_bids_only_and_within_range() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = market.create(slice_.offer_id, RentTerms(10, "alpine"), bid=None)
    with pytest.raises(Refusal) as refusal:
        market.change_bid(contract.contract_id, 0.5)
    assert refusal.value.code == Refusal.NOT_A_BID
    market.destroy(contract.contract_id)
    contract = quiet.rent(market, slice_)
    for price in (0.0, 32.0 * slice_.num_gpus + 1):
        with pytest.raises(Refusal) as refusal:
            market.change_bid(contract.contract_id, price)
        assert refusal.value.code == Refusal.BAD_PRICE


def test_changing_a_bid_without_a_price_bids_what_wins() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = quiet.rent(market, slice_)
    market.add_rival(slice_.machine_id, slice_.num_gpus, 0.9)
    assert market.change_bid(contract.contract_id, None) == pytest.approx(0.9001, abs=1e-6)
    market.advance_to(market.now + 60)
    assert contract.holds_gpu


def test_a_rival_by_hand_must_bid_or_rent_on_demand_on_a_host_that_is() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    for terms in ({}, {"bid": 0.5, "on_demand": True}, {"bid": -1.0}):
        with pytest.raises(Refusal) as refusal:
            market.add_rival(slice_.machine_id, 1, **terms)  # type: ignore[arg-type]
        assert refusal.value.code == Refusal.BAD_PRICE
    with pytest.raises(Refusal) as refusal:
        market.add_rival(3, 1, 0.5)
    assert refusal.value.code == Refusal.NO_SUCH_HOST
    assert market.remove_rival(99) is False


def test_log_lines_grow_while_it_runs() -> None:
    market = quiet.world()
    contract = quiet.run(market, quiet.rent(market, quiet.a_slice(market), onstart="echo hello"))
    market.advance_to(market.now + 600)
    lines = market.log_lines(contract.contract_id)
    assert "+ echo hello" in lines
    assert lines[-1].endswith("step 10")
    assert market.log_lines(contract.contract_id, 2) == lines[-2:]
