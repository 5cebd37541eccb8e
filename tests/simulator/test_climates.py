"""The climates that come along are readable, depart from the calibrated one as they say, and never break their word."""

import pytest

from agent.simulator import climate_files, faults
from agent.simulator.climate import Climate, ClimateError
from agent.simulator.runpod.climate_table import Runpod
from agent.simulator.vast.model import EndCause, NoticeKind, RentTerms, StopCause
from agent.simulator.vast.world import World
from tests.support import quiet

WANTED = {"calm", "bidding_war", "price_spike", "blackout", "lying_list", "host_death", "broke", "recorded"}
GRACE_SECONDS = 600.0


def test_every_wanted_climate_comes_along() -> None:
    assert set(climate_files.names()) >= WANTED


@pytest.mark.parametrize("name", sorted(WANTED))
def test_a_climate_can_be_read_and_its_weather_declared(name: str) -> None:
    climate = climate_files.named(name)
    assert climate.name == name
    assert climate.about
    for declaration in climate.weather:
        faults.parse(declaration)


def test_the_recorded_climate_is_nothing_but_the_defaults() -> None:
    about = climate_files.named("recorded").about
    assert climate_files.named("recorded") == Climate(about=about, tables=(Runpod(mode="historical"),))


def test_only_climates_of_the_past_begin_with_bids_on_runpod() -> None:
    begun = {name: climate_files.named(name).table(Runpod).mode for name in climate_files.names()}
    assert {name for name, mode in begun.items() if mode == "historical"} == {"recorded", "bids_end"}
    assert {mode for name, mode in begun.items() if name not in {"recorded", "bids_end"}} == {"spot_discontinued"}


def test_lists_lie_for_less_than_the_grace_and_one_lie_at_a_time() -> None:
    end = 0.0
    lies = sorted(climate_files.named("lying_list").weather, key=lambda lie: float(lie["at_seconds"]))
    assert {lie["fault"] for lie in lies} == {"empty_list", "partial_list", "stale_list"}
    for lie in lies:
        assert lie["at_seconds"] - end > GRACE_SECONDS
        assert lie["seconds"] < GRACE_SECONDS
        end = lie["at_seconds"] + lie["seconds"]


def test_the_blackout_lasts_thirty_minutes() -> None:
    assert {fault["seconds"] for fault in climate_files.named("blackout").weather} == {1800}


def rent_some(market: World, count: int) -> None:
    machines: set[int] = set()
    for slice_ in list(market.listed()):
        floor = market.true_floor(slice_)
        if floor and market.is_rentable(slice_) and slice_.machine_id not in machines and len(machines) < count:
            machines.add(slice_.machine_id)
            market.create(slice_.offer_id, RentTerms(10, "alpine"), bid=floor * 1.2)


def stops(name: str) -> int:
    market = World(climate_files.named(name), seed=3, start=quiet.START, hosts=200, credit=1e5)
    rent_some(market, 30)
    market.advance_to(market.now + 12 * 3600)
    return sum(notice.kind is NoticeKind.OUTBID for notice in market.inbox)


def test_a_calm_market_interrupts_least_and_a_bidding_war_most() -> None:
    calm, recorded, war = stops("calm"), stops("recorded"), stops("bidding_war")
    print("interruptions of 30 rents in 12 h: calm", calm, "recorded", recorded, "bidding_war", war)
    assert calm < recorded < war


def test_a_price_spike_raises_asks_and_floors_and_stops_what_bids_less() -> None:
    market = World(climate_files.named("price_spike"), seed=3, start=quiet.START, hosts=200, credit=1e5)
    rent_some(market, 20)
    spike = market.climate.spikes[0]
    slice_ = next(slice_ for slice_ in market.listed() if slice_.gpus)
    market.advance_to(quiet.START + spike.at_seconds - 1)
    ask = market.ask(slice_)
    market.advance_to(quiet.START + spike.at_seconds + 1)
    assert market.ask(slice_) == pytest.approx(ask * spike.factor, rel=0.02)
    assert any(contract.stop_cause is StopCause.FLOOR_RAISED for contract in market.live_contracts())
    market.advance_to(quiet.START + spike.at_seconds + spike.seconds + 1)
    assert market.ask(slice_) < ask * 1.5


def test_host_death_strikes_a_host_of_ours() -> None:
    market = World(climate_files.named("host_death"), seed=3, start=quiet.START, hosts=100, credit=1e5)
    rent_some(market, 3)
    market.advance_to(quiet.START + 24 * 3600)
    assert NoticeKind.OFFLINE in [notice.kind for notice in market.inbox]
    assert any(contract.end_cause is EndCause.HOST_GONE for contract in market.contracts.values())


def test_broke_runs_out_of_credit_and_is_paid_in_again() -> None:
    market = World(climate_files.named("broke"), seed=3, start=quiet.START, hosts=100)
    rent_some(market, 2)
    market.advance_to(quiet.START + 12 * 3600 - 1)
    assert market.credit < 0
    assert all(not contract.holds_gpu for contract in market.live_contracts())
    market.advance_to(quiet.START + 12 * 3600 + 1)
    assert market.credit > 30


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("hots = 3", "hots"),
        ("[demand]\narivals = 1.0", "arivals"),
        ("[[spike]]\nat_seconds = 1", "seconds"),
        ("hosts = ", "TOML"),
    ],
)
def test_a_climate_that_cannot_be_read_says_where(text: str, named: str) -> None:
    with pytest.raises(ClimateError, match=named):
        climate_files.parse(text, "mine")


def test_a_climate_takes_what_its_text_says_and_no_unknown_name() -> None:
    climate = climate_files.parse("hosts = 3\n[demand]\narrivals = 0.0\n", "mine")
    assert (climate.name, climate.hosts, climate.demand.arrivals) == ("mine", 3, 0.0)
    with pytest.raises(ClimateError, match="calm"):
        climate_files.named("stormy")
