"""How capacity comes and goes: a pool's own observations, and how they are forgotten."""

import math

import numpy as np
import pytest

from agent.decide.deadline import hazards

POOL = hazards.Hazards(
    edges=(0.0, 1.0), losses=(0.5, 0.1), returns=(1.0, 0.2), factors=((0.5, 1.0), (2.0, 1.0)), weights=(0.6, 0.4)
)


def shares(belief: hazards.Belief) -> list[float]:
    return [float(share) for share in belief.weights(POOL)]


def test_before_anything_was_seen_the_weights_stand() -> None:
    assert shares(hazards.first(POOL, is_up=True, age=0.0)) == pytest.approx([0.6, 0.4])


def test_an_hour_that_lasts_and_a_loss_weigh_by_their_likelihood() -> None:
    begun = hazards.first(POOL, is_up=True, age=0.0)
    lasted = hazards.observe(POOL, begun, is_up=True, hours=1.0)
    # 0.6 e^(-0.25) against 0.4 e^(-1)
    good, bad = 0.6 * math.exp(-0.25), 0.4 * math.exp(-1.0)
    assert shares(lasted) == pytest.approx([good / (good + bad), bad / (good + bad)])
    lost = hazards.observe(POOL, begun, is_up=False, hours=1.0)
    good, bad = 0.6 * (1 - math.exp(-0.25)), 0.4 * (1 - math.exp(-1.0))
    assert shares(lost) == pytest.approx([good / (good + bad), bad / (good + bad)])


def test_age_runs_from_the_change_and_chooses_the_hazard() -> None:
    belief = hazards.first(POOL, is_up=True, age=0.0)
    for _ in range(6):
        belief = hazards.observe(POOL, belief, is_up=True, hours=1 / 6)
    assert belief.age == pytest.approx(1.0)
    assert POOL.bin(belief.age) == 1
    lost = hazards.observe(POOL, belief, is_up=False, hours=1 / 6)
    assert (lost.is_up, lost.age) == (False, 0.0)


def test_evidence_is_forgotten_by_half_in_a_half_life() -> None:
    begun = hazards.first(POOL, is_up=False, age=0.0)
    told = hazards.Belief(is_up=False, age=0.0, evidence=np.array([4.0, 0.0]))
    rested, fresh = (hazards.observe(POOL, each, is_up=False, hours=POOL.half_life) for each in (told, begun))
    assert rested.evidence - fresh.evidence == pytest.approx([2.0, 0.0])


def test_what_ships_is_a_distribution_of_models_with_falling_hazards() -> None:
    shipped = hazards.SHIPPED
    assert sum(shipped.weights) == pytest.approx(1.0, abs=0.01)
    assert shipped.loss_rates.shape == shipped.return_rates.shape == (len(shipped.edges), len(shipped.factors))
    for rates in (shipped.losses, shipped.returns):
        assert list(rates) == sorted(rates, reverse=True)
