"""The terms of a rent: secrets are looked up last, and a missing one sends nothing."""

import json
import shlex
from dataclasses import replace
from datetime import timedelta

import pytest

from agent.act import rent_terms
from agent.act.guarding.guard_launch import GuardLaunch
from agent.domain.market.tenure import Tenure
from agent.domain.work import guard_prelude
from agent.domain.work.decision import Advice, Reason, Rent
from agent.domain.work.guard_terms import Accept, Ask, GuardTerms
from agent.domain.work.workload import ImageLogin, Runtype, WorkloadKind
from agent.markets import market_errors, port
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
OF_THE_SLOT = (("GPUBID_WORKLOAD", "train"), ("GPUBID_SLOT", "0"), ("GPUBID_SLOTS", "1"))


def test_secrets_are_put_in_by_name() -> None:
    made = rent_terms.of(RENT, PRIVATE, SAFE.__getitem__)
    assert made.environment == (("EPOCHS", "90"), *OF_THE_SLOT, ("TOKEN", "s3cret"))
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
    assert told == dict(OF_THE_SLOT) | {
        "GPUBID_CHECKPOINT_SECONDS": "360",
        "GPUBID_CHECKPOINT_BY_AGE": "0:200 600:240",
    }
    own = builders.workload(environment=(("GPUBID_CHECKPOINT_SECONDS", "60"),))
    assert dict(rent_terms.of(advised, own, rent_terms.none).environment)["GPUBID_CHECKPOINT_SECONDS"] == "60"


def test_a_container_gets_its_number_among_its_workloads_slots_unless_its_owner_sets_it() -> None:
    rent = replace(RENT, slot=builders.slot("sweep", 17))
    told = dict(rent_terms.of(rent, builders.workload("sweep", slots=100), rent_terms.none).environment)
    assert told == {"GPUBID_WORKLOAD": "sweep", "GPUBID_SLOT": "17", "GPUBID_SLOTS": "100"}
    own = builders.workload("sweep", slots=100, environment=(("GPUBID_SLOT", "first"),))
    assert dict(rent_terms.of(rent, own, rent_terms.none).environment)["GPUBID_SLOT"] == "first"


def test_a_container_gets_the_value_of_its_slot() -> None:
    work = builders.workload("sweep", slots=3, values=(("LR", ("0.1", "0.2", "0.3")), ("GPUBID_SLOT", ("a", "b", "c"))))
    told = dict(rent_terms.of(replace(RENT, slot=builders.slot("sweep", 1)), work, rent_terms.none).environment)
    assert (told["LR"], told["GPUBID_SLOT"]) == ("0.2", "b")


LAUNCH = GuardLaunch(
    "00ab", 3, "f1/train/0/3", manifest_exists=True, url="https://s3/guard/ab.pyz?X-Sig=1", sha256="ab"
)
KEYS = {"train_bucket": "AKIA1:s3cret:with/colon"}


def test_a_workload_without_a_guard_starts_to_the_letter_as_it_says() -> None:
    work = builders.workload(command="python a.py 'b c'", environment=(("EPOCHS", "90"),), ports=(8000,))
    plain = port.Terms(
        tenure=RENT.tenure,
        bid=RENT.bid,
        disk_gb=20.0,
        image="ubuntu:22.04",
        command="python a.py 'b c'",
        onstart="",
        environment=(("EPOCHS", "90"), *OF_THE_SLOT),
        ports=(8000,),
        runtype=Runtype.AUTO,
        ssh_keys=(),
        login=None,
        template="",
    )
    assert rent_terms.of(RENT, work, rent_terms.none) == plain
    assert rent_terms.of(RENT, work, rent_terms.none, LAUNCH) == plain


def test_a_guard_starts_the_command_and_gets_the_buckets_key_in_variables_alone() -> None:
    work = builders.guarded(command="python a.py 'b c'", environment=(("EPOCHS", "90"),), kind=WorkloadKind.BATCH)
    made = rent_terms.of(RENT, work, KEYS.__getitem__, LAUNCH)
    assert shlex.split(made.command) == ["sh", "-c", guard_prelude.text(), "gpubid-guard", "python", "a.py", "b c"]
    told = dict(made.environment)
    assert json.loads(told.pop("GPUBID_GUARD")) == {
        "version": 1,
        "paths": ["/w"],
        "complete": None,
        "ask": "SIGUSR1",
        "keep": 2,
        "final_within_seconds": 8.0,
        "done_codes": [0],
        "interval_seconds": 900,
        "bucket": {
            "endpoint": "http://127.0.0.1:9000",
            "region": "us-east-1",
            "name": "runs",
            "root": "train/f1/train/0/3",
        },
        "rclone": None,
        "lease": "00ab",
        "run": 3,
        "manifest_exists": True,
        "logs": True,
    }
    assert told == dict(OF_THE_SLOT) | {
        "EPOCHS": "90",
        "GPUBID_GUARD_SHA256": "ab",
        "GPUBID_GUARD_URL": LAUNCH.url,
        "GPUBID_BUCKET_KEY_ID": "AKIA1",
        "GPUBID_BUCKET_SECRET": "s3cret:with/colon",
    }
    assert not any(secret in repr(made) for secret in ("AKIA1", "s3cret"))


def test_a_switch_is_told_after_how_long_and_whom_to_ask() -> None:
    terms = builders.guarded().guard
    assert terms is not None
    work = builders.guarded(guard=replace(terms, deadman=timedelta(hours=6), destroy=True))
    launch = replace(LAUNCH, market="vast", api="https://console.vast.ai")
    made = rent_terms.of(RENT, work, KEYS.__getitem__, launch)
    told = json.loads(dict(made.environment)["GPUBID_GUARD"])["deadman"]
    assert told == {
        "after_seconds": 21600,
        "destroy": True,
        "api": "https://console.vast.ai",
        "instance_from": "CONTAINER_ID",
        "key_from": "CONTAINER_API_KEY",
        "stop": {"method": "PUT", "path": "/api/v0/instances/{instance}/", "body": {"state": "stopped"}},
        "end": {"method": "DELETE", "path": "/api/v0/instances/{instance}/", "body": {}},
    }
    with pytest.raises(market_errors.Rejected, match="mithril gives an instance no key"):
        rent_terms.of(RENT, work, KEYS.__getitem__, replace(launch, market="mithril"))


@pytest.mark.parametrize("script", ["", "python3 -m mine"])
@pytest.mark.parametrize("accept", Accept)
def test_a_guard_is_told_to_check_the_host_where_something_follows(accept: Accept, script: str) -> None:
    terms = builders.guarded().guard
    assert terms is not None
    checked = builders.guarded(guard=replace(terms, accept=accept, accept_script=script))
    made = rent_terms.of(RENT, checked, KEYS.__getitem__, LAUNCH)
    told = json.loads(dict(made.environment)["GPUBID_GUARD"]).get("acceptance")
    assert told == (None if accept is Accept.OFF else {"seconds": 60, "script": script or None})


def test_a_guard_starts_a_script_and_asks_as_often_as_is_advised() -> None:
    work = builders.guarded(command="", onstart="echo 'hello'\nsleep 1")
    advised = replace(RENT, advice=Advice(360, ((0, 200),), 0.2))
    made = rent_terms.of(advised, work, KEYS.__getitem__, LAUNCH)
    assert (made.command, made.onstart) == ("", guard_prelude.script("echo 'hello'\nsleep 1"))
    assert json.loads(dict(made.environment)["GPUBID_GUARD"])["interval_seconds"] == 360


def test_a_guard_without_a_bucket_gets_no_key() -> None:
    work = builders.guarded(guard=GuardTerms(("/w",), ask=Ask.NONE))
    made = rent_terms.of(RENT, work, rent_terms.none, replace(LAUNCH, folder="", url="", manifest_exists=False))
    told = dict(made.environment)
    assert told.keys() == dict(OF_THE_SLOT).keys() | {"GPUBID_GUARD", "GPUBID_GUARD_SHA256"}
    assert json.loads(told["GPUBID_GUARD"])["bucket"] is None


@pytest.mark.parametrize(
    ("keys", "changes", "words"),
    [
        ({"train_bucket": "AKIA1"}, {}, "KEY_ID:SECRET"),
        ({"train_bucket": "a:b"}, {"command": "python 'a"}, "No closing quotation"),
    ],
)
def test_a_guard_that_cannot_be_started_refuses_before_anything_is_sent(
    keys: dict[str, str], changes: dict[str, str], words: str
) -> None:
    with pytest.raises(market_errors.Rejected, match=words) as caught:
        rent_terms.of(RENT, builders.guarded(**changes), keys.__getitem__, LAUNCH)
    assert "AKIA1" not in str(caught.value)
    with pytest.raises(market_errors.Rejected, match="not prepared"):
        rent_terms.of(RENT, builders.guarded(), KEYS.__getitem__)
