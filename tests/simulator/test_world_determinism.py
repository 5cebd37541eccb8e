"""Same climate, seed, start and calls, same answers - however finely time is cut and whatever is looked at."""

import dataclasses
import random

import pytest

from agent.simulator import climate_files
from agent.simulator.market_model import Refusal
from agent.simulator.vast.model import RentTerms
from agent.simulator.vast.world import World
from tests.support import quiet

HOURS = 30


def play(name: str, seed: int, *, step: float, looks: bool) -> tuple[object, ...]:
    """Rent a dozen slices on the hour, stop, start and rebid, and give everything that can be seen in the end."""
    market = World(climate_files.named(name), seed=seed, start=quiet.START, hosts=80, credit=100.0)
    dice = random.Random(seed)
    offers = sorted(slice_.offer_id for slice_ in market.slices.values() if slice_.gpus)
    for hour in range(HOURS):
        end = quiet.START + 3600.0 * (hour + 1)
        while market.now < end:
            if looks:
                look(market)
            market.advance_to(min(market.now + step, end))
        move(market, dice, offers)
    look(market)
    return market.truth(), list(market.inbox), market.charges(0, market.now), prices(market)


def look(market: World) -> None:
    for slice_ in market.listed():
        market.is_rentable(slice_)


def prices(market: World) -> list[tuple[object, ...]]:
    return [
        (slice_.offer_id, market.ask(slice_), market.true_floor(slice_), market.quoted_floor(slice_))
        for slice_ in market.listed()
    ]


def move(market: World, dice: random.Random, offers: list[int]) -> None:
    offer_id, kind = dice.choice(offers), dice.random()
    contracts = market.live_contracts()
    try:
        if kind < 0.5 or not contracts:
            slice_ = market.slices[offer_id]
            floor = market.true_floor(slice_) or 0.2
            market.create(offer_id, RentTerms(10, "pytorch/x"), bid=None if kind < 0.1 else floor * 1.2)
        elif kind < 0.6:
            market.destroy(contracts[0].contract_id)
        elif kind < 0.8:
            market.change_bid(contracts[-1].contract_id, dice.uniform(0.05, 0.9))
        elif kind < 0.9:
            market.stop(contracts[-1].contract_id)
        else:
            market.start(contracts[-1].contract_id)
    except Refusal:
        pass


@pytest.mark.parametrize("name", ["recorded", "bidding_war", "price_spike", "host_death", "broke"])
def test_neither_looking_nor_the_size_of_steps_changes_the_market(name: str) -> None:
    whole = play(name, 11, step=3600.0, looks=False)
    fine = play(name, 11, step=47.0, looks=False)
    watched = play(name, 11, step=600.0, looks=True)
    for part, other, third in zip(whole, fine, watched, strict=True):
        assert approx(part) == approx(other)
        assert approx(part) == approx(third)


def approx(value: object) -> object:
    """Round the last bits of floats away: sums over finer steps differ there."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: approx(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [approx(part) for part in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [approx(getattr(value, field.name)) for field in dataclasses.fields(value)]
    return value


def test_another_seed_is_another_market() -> None:
    assert play("recorded", 1, step=3600.0, looks=False)[0] != play("recorded", 2, step=3600.0, looks=False)[0]


def test_time_never_runs_backwards() -> None:
    market = quiet.world()
    market.advance_to(quiet.START + 100)
    market.advance_to(quiet.START)
    assert market.now == quiet.START + 100
