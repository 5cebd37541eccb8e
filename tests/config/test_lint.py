"""Unintended effects of a correct file: each finding is red on one odd key and silent on a sound file."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from agent.config import loading
from agent.config.linting import lint
from agent.config.settings import Config
from agent.domain import money
from agent.domain.market import card_memory, gpu
from agent.domain.market.market_rules import Survives
from agent.domain.money import Usd
from agent.domain.record import budget
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.deadline import Deadline
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.run_times.running_limit import RunningLimit
from agent.domain.work.stall import OnStall, StallRule
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Fallback
from agent.markets import registered_markets
from agent.simulator.runpod import places as runpod_places
from agent.simulator.vast import places as vast_places
from tests.support import builders
from tests.support.configs import GOOD

NOW = builders.NOW
OF_REQUIREMENTS = ("gpu_models", "min_vram_mb", "regions", "datacenter_only", "network_volume")
DEADLINE = Deadline(hours=30.0, by=NOW + timedelta(hours=20))


@pytest.fixture
def good(tmp_path: Path) -> Config:
    file = tmp_path / "agent.toml"
    file.write_text(GOOD)
    return loading.load(file, strategies=frozenset({"patient", "hedged", "ondemand", "deadline"}))


def changed(config: Config, **changes: Any) -> Config:
    wants = {name: changes.pop(name) for name in OF_REQUIREMENTS if name in changes}
    work = config.workloads[0]
    work = replace(work, **changes, requirements=replace(work.requirements, **wants))
    return replace(config, workloads=(work, *config.workloads[1:]))


def told(config: Config, **known: Any) -> list[str]:
    return [f"{each.key}: {each.sentence}; {each.fix}" for each in lint.findings(config, lint.Known(NOW, **known))]


def test_a_sound_file_draws_nothing(good: Config) -> None:
    assert told(good) == []


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"gpu_models": (gpu.model("RTX 4909"),)}, "gpu", 'did you mean "RTX 4090"?'),
        (
            {"value_per_hour": money.per_hour("0.44")},
            "max_price",
            "for an hour that is worth $0.4400/h (value_per_hour)",
        ),
        (
            {
                "value_per_hour": money.per_hour("0.45"),
                "gpu_models": (gpu.model("RTX 4090"),),
                "max_price_by_gpu": ((gpu.model("RTX 4090"), money.per_hour("0.46")),),
            },
            'max_price_by_gpu."RTX 4090"',
            "lower it to value_per_hour",
        ),
        ({"gpu_models": (gpu.model("quantum cube"),)}, "gpu", "compare the market's own list"),
        ({"gpu_models": (gpu.model("RTX 4090"),), "min_vram_mb": 48_000}, "min_vram_gb", "the largest has 24"),
        ({"min_vram_mb": 900_000, "gpu_models": ()}, "min_vram_gb", "no card that is accepted has 900 GB"),
        ({"regions": ("UK",)}, "regions", '"UK" is the code of no country'),
        ({"regions": ("Swedn",)}, "regions", 'did you mean "Sweden"?'),
        ({"regions": ("US", "Atlantis")}, "regions", 'no country, state or data centre "Atlantis"'),
        ({"regions": ("Europe",)}, "regions", "write the codes of countries"),
        ({"regions": ("texs, US",)}, "regions", 'did you mean "Texas"?'),
        ({"regions": ("TX",)}, "regions", '"TX" is the code of no country'),
        ({"disk_gb": 2.0, "image_gb": 9.5}, "disk_gb", "write at least 9.5"),
        (
            {"slots": 2, "environment": (("GPUBID_SLOT", "7"),)},
            "env.GPUBID_SLOT",
            "all 2 slots get this value in place of their own number",
        ),
        (
            {"network_volume": "nv1", "network_volume_rate": money.per_hour("0.01")},
            "network_volume",
            "vast mounts no network volume: nothing is rented there; write mark",
        ),
        ({"disk_gb": 50_000.0}, "disk_gb", "hosts have less"),
        ({"max_price": money.per_hour("99")}, "max_price", "is above max_price_per_instance_hour"),
        (
            {"max_price_by_gpu": ((gpu.model("RTX 4909"), money.per_hour("0.3")),)},
            'max_price_by_gpu."RTX 4909"',
            'gpubid knows no card "RTX 4909"; did you mean "RTX 4090"?',
        ),
        (
            {"max_price_by_gpu": ((gpu.model("H100 SXM"), money.per_hour("2.1")),)},
            'max_price_by_gpu."H100 SXM"',
            "$2.1000/h is above max_price_per_instance_hour, $0.6000/h",
        ),
        (
            {"stalled": StallRule(then=(OnStall.HOLD,))},
            "stalled_then",
            "has no effect without stalled_after: nothing finds stalled work; write stalled_after",
        ),
        (
            {"fallback": Fallback(after=timedelta(minutes=5))},
            "fallback_after",
            "has no effect without fallback_markets: no other market is used while a slot is down; write",
        ),
        (
            {"strategy": "ondemand", "value_per_hour": money.per_hour("0.9")},
            "value_per_hour",
            "ondemand rents up to max_price, whatever an hour is worth: this only prices idle hours; write",
        ),
        ({"strategy": "ondemand", "value_share": 0.8}, "value", 'write strategy = "patient" or "hedged", or remove it'),
        (
            {
                "strategy": "deadline",
                "deadline": replace(DEADLINE, hours=5.0),
                "value_per_hour": money.per_hour("0.9"),
            },
            "value_per_hour",
            "deadline rents up to max_price",
        ),
        (
            {
                "gpu_models": (gpu.model("RTX 4090"),),
                "strategy": "hedged",
                "deadline": replace(DEADLINE, hours=5.0, reference_gpu=gpu.model("RTX 9999")),
            },
            "deadline.reference_gpu",
            "no benchmark of RTX 9999 is known, so every GPU counts as fast as that until its speed is measured",
        ),
        ({"strategy": "hedged", "deadline": DEADLINE}, "deadline", "30 h of work do not fit into the 20.0 h left"),
        (
            {"strategy": "hedged", "deadline": replace(DEADLINE, hours=5.0), "not_before": NOW + timedelta(hours=18)},
            "deadline",
            "5 h of work do not fit into the 2.0 h between `not_before` and `by`",
        ),
        (
            {
                "strategy": "hedged",
                "deadline": replace(DEADLINE, hours=5.0),
                "max_running": (RunningLimit(timedelta(hours=4)),),
            },
            "max_running",
            "the workload may run for 4 h, and has 5 h of work",
        ),
        ({"deadline": replace(DEADLINE, hours=5.0)}, "deadline", "patient does not hurry for a deadline"),
        (
            {"strategy": "hedged", "deadline": replace(DEADLINE, by=NOW - timedelta(hours=1))},
            "deadline.by",
            "UTC is in the past",
        ),
        ({"shadow": ("hedged", "patient")}, "shadow", "on paper it decides the same"),
    ],
    ids=str,
)
def test_one_odd_key_is_found(good: Config, changes: dict[str, Any], key: str, words: str) -> None:
    (found,) = told(changed(good, **changes))
    assert found.startswith(f"workloads.{good.workloads[0].name}.{key}: ")
    assert words in found


def test_keys_with_the_key_that_they_need_pass(good: Config) -> None:
    stalled = StallRule(timedelta(minutes=45), (OnStall.HOLD,))
    assert told(changed(good, stalled=stalled, fallback=Fallback(("dstack",), timedelta(minutes=5)))) == []


@pytest.mark.parametrize(
    "changes",
    [{"strategy": "patient"}, {"strategy": "hedged"}, {"strategy": "ondemand", "shadow": ("patient",)}],
    ids=str,
)
def test_a_value_that_ranks_offers_passes(good: Config, changes: dict[str, Any]) -> None:
    assert told(changed(good, value_per_hour=money.per_hour("0.9"), **changes)) == []


def test_a_value_that_deadline_bids_in_an_auction_passes(good: Config) -> None:
    work = {"strategy": "deadline", "deadline": replace(DEADLINE, hours=5.0), "value_per_hour": money.per_hour("0.9")}
    auctions = replace(good, markets=(replace(good.markets[0], name="mithril"),))
    assert not any("value_per_hour" in each for each in told(changed(auctions, **work)))


@pytest.mark.parametrize(
    "region",
    ["US", "se", "Sweden", "sweden", "South Korea", "The Netherlands", "Texas", "Texas, US", ", US", "EU-RO-1"],
)
def test_what_may_be_a_region_passes(good: Config, region: str) -> None:
    assert told(changed(good, regions=(region,))) == []


def test_a_market_that_tells_no_data_centre_is_named_before_anything_waits_for_it(
    good: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = changed(good, datacenter_only=True)
    assert told(asks) == []
    silent = replace(registered_markets.record("vast"), shows_datacenter=False)
    monkeypatch.setattr(registered_markets, "record", lambda _: silent)
    (found,) = told(asks)
    assert "datacenter: vast does not show whether a host is in a data centre: nothing is rented there" in found


def test_a_market_without_ports_or_lasting_disks_is_named_before_anything_waits_for_it(
    good: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work,) = good.workloads
    served = replace(good, workloads=(replace(work, ports=(8000,), checkpoint=Checkpoint(place=CheckpointPlace.DISK)),))
    assert told(served) == []
    vast = registered_markets.record("vast")
    bare = replace(vast, opens_ports=False, rules=structs.replace(vast.rules, survives=Survives.NOTHING))
    monkeypatch.setattr(registered_markets, "record", lambda _: bare)
    ports, disk = told(served)
    assert "ports: vast opens no ports to the outside: a slot there is not in /services" in ports
    (work,) = served.workloads
    asked = replace(served, workloads=(replace(work, ready=Readiness(ReadySign.HTTP, port=8000)),))
    assert "ports: vast opens no ports to the outside: nothing is rented there" in told(asked)[0]
    monkeypatch.setattr(registered_markets, "record", lambda _: replace(bare, asks_pages=True))
    assert "ports: vast opens no ports to the outside: a slot there is not in /services" in told(asked)[0]
    (work,) = asked.workloads
    proxied = replace(asked, workloads=(replace(work, has_proxy=True),))
    assert "ports: vast opens no ports to the outside: nothing is rented there" in told(proxied)[0]
    assert "vast keeps no disk of a lost instance: nothing is rented there with checkpoints on it" in disk


def test_looks_too_far_apart_to_prove_an_end_are_named(good: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    vast = registered_markets.record("vast")
    watched = replace(vast, rules=structs.replace(vast.rules, proves_ends_within=timedelta(minutes=2)))
    monkeypatch.setattr(registered_markets, "record", lambda _: watched)
    assert told(replace(good, poll=timedelta(minutes=1))) == []
    (slow,) = told(replace(good, poll=timedelta(minutes=3)))
    assert "agent.poll: vast proves no end by listings so far apart: an ended instance counts as billing" in slow
    assert 'write poll = "60s", or less' in slow


def test_a_region_that_an_offer_was_seen_in_passes(good: Config) -> None:
    asks = changed(good, regions=("Bavaria", "bavaria, de"))
    assert len(told(asks)) == 2
    assert told(asks, regions={"Bavaria, DE", ", US"}) == []
    assert len(told(asks, regions={"Saxony, DE"})) == 2


def test_every_place_of_the_simulated_markets_passes(good: Config) -> None:
    places = [place for _, place, _, _ in vast_places.PLACES]
    centers = [center.center_id for center in runpod_places.DATA_CENTERS]
    assert told(changed(good, regions=(*places, *centers))) == []


def test_cards_that_show_a_little_more_memory_than_they_are_sold_with_pass(good: Config) -> None:
    assert told(changed(good, gpu_models=(gpu.model("RTX 4090"),), min_vram_mb=24_500)) == []


def test_a_volume_that_no_budget_counts_is_found(good: Config) -> None:
    unpriced, _ = told(changed(good, network_volume="nv1"))
    assert unpriced.startswith("workloads.train.network_volume: bills by the hour whether or not anything runs")


def test_the_price_of_a_model_is_compared_with_what_that_model_costs(good: Config) -> None:
    slow, fast = gpu.model("RTX 3090"), gpu.model("RTX 4090")
    seen = {slow: money.per_hour("0.01"), fast: money.per_hour("0.2")}
    own = ((slow, money.per_hour("0.3")),)
    (found,) = told(changed(good, gpu_models=(slow, fast), max_price_by_gpu=own), prices=seen)
    assert found.startswith(f'workloads.{good.workloads[0].name}.max_price_by_gpu."RTX 3090": $0.3000/h is over 10')
    assert (
        told(changed(good, gpu_models=(slow,), max_price_by_gpu=((slow, money.per_hour("0.05")),)), prices=seen) == []
    )


def test_a_price_far_above_what_was_seen_is_a_slip(good: Config) -> None:
    model = gpu.model("RTX 4090")
    asks, most = changed(good, gpu_models=(model,)), good.workloads[0].max_price
    (found,) = told(asks, prices={model: most.scaled(1 / 10.5)})
    assert "times the lowest price seen for its cards" in found
    assert told(asks, prices={model: most.scaled(1 / 9.5)}) == []


def test_more_slots_than_instances_and_a_fleet_under_one_instance_are_found(good: Config) -> None:
    assert any("the others never run" in each for each in told(replace(good, limits=replace(good.limits, instances=0))))
    small = replace(good.limits, per_hour=money.per_hour("0.01"))
    assert any(each.startswith("limits.max_fleet_per_hour: ") for each in told(replace(good, limits=small)))


def test_a_day_that_may_cost_more_than_its_month_is_found(good: Config) -> None:
    limits = replace(good.limits, per_day=money.usd("10"), per_month=money.usd("9.99"))
    found = "limits.max_per_day: $10.0000 a day never stops anything: the $9.9900 of max_per_month stop it first"
    assert any(each.startswith(found) for each in told(replace(good, limits=limits)))


def test_checkpoints_without_time_between_them_are_found(good: Config) -> None:
    every = timedelta(minutes=15)
    short, whole = (Checkpoint(every, takes=takes) for takes in (every - timedelta(seconds=1), every))
    assert told(changed(good, checkpoint=short)) == told(good)
    (found,) = told(changed(good, checkpoint=whole))
    assert found.startswith("workloads.train.checkpoint.takes: a checkpoint takes 15m and the next is due after 15m")


@pytest.mark.parametrize("key", ["max_per_day", "max_per_month", "max_total", "max_fleet_per_hour"])
def test_a_limit_of_nothing_is_found(good: Config, key: str) -> None:
    nothing: Any = money.per_hour("0") if "hour" in key else Usd(0)
    changes = {key.removeprefix("max_").removeprefix("fleet_"): nothing}
    found = told(replace(good, limits=replace(good.limits, **changes)))
    assert f"limits.{key}: a limit of 0 dollars forbids every rent" in [each.partition(";")[0] for each in found]


def test_a_budget_of_nothing_is_found_in_its_own_table(good: Config) -> None:
    nothing = budget.Budget(budget.Thresholds(per_hour=money.per_hour("0")))
    scopes = {budget.of_workload(good.workloads[0].name): nothing, budget.of_market("vast"): nothing}
    found = told(replace(good, limits=replace(good.limits, budgets=scopes)))
    assert [each.partition(";")[0] for each in found] == [
        "markets.vast.budget.max_per_hour: a limit of 0 dollars forbids every rent on vast",
        "workloads.train.budget.max_per_hour: a limit of 0 dollars forbids every rent for train",
    ]


def test_a_budget_without_room_for_one_instance_is_found_in_its_own_table(good: Config) -> None:
    work = good.workloads[0]
    small = budget.Budget(budget.Thresholds(per_day=Usd(work.max_price.micros * 2 - 1)))
    limits = replace(good.limits, reserve=timedelta(hours=2), budgets={budget.of_workload(work.name): small})
    (found,) = told(replace(good, limits=limits))
    assert found.startswith(f"workloads.{work.name}.budget.max_per_day: an instance of {work.name} at {work.max_price}")
    assert "in the 2 h of limits.reserve, so none is rented at that price before the last 1 h 59 min of a day" in found
    array = changed(replace(good, limits=limits), array=ArrayTerms(1))
    assert told(array) == [], "its budget counts by its tasks"
    limits = replace(limits, reserve=timedelta(hours=1))
    assert told(replace(good, limits=limits)) == []


def test_an_array_needs_no_more_instances_than_are_live_at_once(good: Config) -> None:
    caps = replace(good.limits, instances=8)
    whole = changed(replace(good, limits=caps), slots=100)
    assert any("may have 100 slots at once, and max_instances is 8" in each for each in told(whole))
    array = changed(replace(good, limits=caps), slots=100, array=ArrayTerms(8))
    assert not any(each.startswith("limits.max_instances: ") for each in told(array))


@pytest.mark.parametrize(("is_simulated", "is_found"), [(False, True), (True, False)])
def test_a_budget_that_outlasts_the_credit_is_found_where_money_is_real(
    good: Config, *, is_simulated: bool, is_found: bool
) -> None:
    markets = tuple(replace(each, spend=True, simulated="still" if is_simulated else "") for each in good.markets)
    limits = replace(good.limits, per_day=money.usd("40"))
    found = told(replace(good, markets=markets, limits=limits), credits={good.markets[0].name: money.usd("10")})
    assert any(each.startswith("limits.max_per_day: ") for each in found) is is_found


@pytest.mark.parametrize(
    ("dollars", "is_found"),
    [
        ({"vast": 10}, False),
        ({"runpod": 10}, False),
        ({"vast": 10, "runpod": 2}, True),
        ({"vast": 10, "runpod": 4}, False),
    ],
)
def test_a_budget_is_compared_with_the_credit_of_every_paying_market(
    good: Config, dollars: dict[str, int], *, is_found: bool
) -> None:
    markets = tuple(replace(good.markets[0], name=name, spend=True, simulated="") for name in ("vast", "runpod"))
    limits = replace(good.limits, per_day=money.usd("40"))
    having = {name: money.usd(amount) for name, amount in dollars.items()}
    found = told(replace(good, markets=markets, limits=limits), credits=having)
    assert any(each.startswith("limits.max_per_day: ") for each in found) is is_found


def test_every_model_has_the_name_that_all_spellings_come_to() -> None:
    assert all(gpu.model(name) == name for name in card_memory.GIGABYTES)


@pytest.mark.parametrize(
    ("lines", "key", "words"),
    [
        ("[notify.hook]\ncommand = ['/bin/true']\n", "", ""),
        (
            "[[notify.rules]]\nchannels = ['webhook']\n[notify.hook]\ncommand = ['/bin/true']\n",
            "notify.hook",
            "no rule names it, so no event is sent to it",
        ),
        (
            "[[notify.rules]]\nchannels = ['webhook']\n[notify.hook]\ncommand = ['/bin/true']\n",
            "notify.rules.0.channels",
            'write channels = ["hook"]',
        ),
        ("[[notify.rules]]\nevent = 'leese.*'\n", "notify.rules.0.event", 'there is no kind of event "leese.*"'),
        ("[[notify.rules]]\nworkload = 'trian'\n", "notify.rules.0.workload", "write one of train"),
        ("[[notify.rules]]\nevent = 'lease.*'\nworkload = 'tr*'\n", "", ""),
    ],
)
def test_rules_and_channels_that_send_nothing(tmp_path: Path, lines: str, key: str, words: str) -> None:
    (tmp_path / "agent.toml").write_text(GOOD + lines)
    config = loading.load(tmp_path / "agent.toml", strategies=frozenset({"patient", "hedged", "ondemand"}))
    found = [each for each in told(config) if each.startswith("notify")]
    assert [each for each in found if each.startswith(f"{key}: ") and words in each] if key else found == []
