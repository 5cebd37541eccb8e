"""On what terms a rent leaves: secrets are looked up last, and a missing one sends nothing."""

from dataclasses import replace

import pytest

from agent.act import rent_terms
from agent.domain.market.tenure import Tenure
from agent.domain.work.decision import Advice, Reason, Rent
from agent.domain.work.workload import ImageLogin
from agent.markets import market_errors
from tests.support import builders

RENT = Rent(
    builders.slot(),
    builders.offer(),
    Tenure.INTERRUPTIBLE,
    builders.per_hour("0.22"),
    builders.per_hour("0.224"),
    Reason("best_offer", "the slot is empty"),
)
PRIVATE = builders.workload(
    environment=(("EPOCHS", "90"),),
    env_from=(("TOKEN", "hub_token"),),
    image_login=ImageLogin("registry.example", "robot", "registry_password"),
)
SAFE = {"hub_token": "s3cret", "registry_password": "pa55"}


def test_secrets_are_put_in_by_name() -> None:
    made = rent_terms.of(RENT, PRIVATE, SAFE.__getitem__)
    assert made.environment == (("EPOCHS", "90"), ("TOKEN", "s3cret"))
    assert made.login is not None
    assert (made.login.user, made.login.password) == ("robot", "pa55")
    assert PRIVATE.credentials == ("registry_password", "hub_token")
    assert not any(secret in repr(PRIVATE) for secret in SAFE.values())


def test_what_needs_no_secret_asks_for_none() -> None:
    made = rent_terms.of(RENT, builders.workload(), rent_terms.none)
    assert (made.tenure, made.bid, made.login) == (RENT.tenure, RENT.bid, None)


def test_a_secret_that_is_not_there_refuses_before_anything_is_sent() -> None:
    with pytest.raises(market_errors.Rejected, match="hub_token"):
        rent_terms.of(RENT, builders.workload(env_from=(("TOKEN", "hub_token"),)), rent_terms.none)


def test_a_container_is_told_how_often_to_make_a_checkpoint_unless_its_owner_says_so() -> None:
    advised = replace(RENT, advice=Advice(360, ((0, 200), (600, 240)), 0.2))
    told = dict(rent_terms.of(advised, builders.workload(), rent_terms.none).environment)
    assert told == {"GPUBID_CHECKPOINT_SECONDS": "360", "GPUBID_CHECKPOINT_BY_AGE": "0:200 600:240"}
    own = builders.workload(environment=(("GPUBID_CHECKPOINT_SECONDS", "60"),))
    assert dict(rent_terms.of(advised, own, rent_terms.none).environment)["GPUBID_CHECKPOINT_SECONDS"] == "60"
