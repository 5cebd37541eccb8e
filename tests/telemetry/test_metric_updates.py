"""Metrics: zero from the start, the fleet as it is, and no label without a bound."""

import dataclasses
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from agent.decide.limits import limits
from agent.decide.operators.bill_drift import Drift
from agent.decide.pricing import protections
from agent.domain import money
from agent.domain.fleet import Fleet, MarketView, Spend
from agent.domain.market.gpu import model
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work import decision
from agent.domain.work.workload import Requirements, Workload
from agent.markets import market_errors
from agent.pass_metrics import Figures
from agent.telemetry import metric_families, metric_updates
from agent.telemetry.metric_updates import Metrics
from tests.support.world import rehearsed

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SLOT = Slot("train", 0)
WORK = Workload("train", "image", money.per_hour("0.5"), "patient", Requirements(), slots=2)
LEASE = Lease(
    lease_id="l1",
    market="vast",
    instance_id="1",
    slot=SLOT,
    tenure=Tenure.INTERRUPTIBLE,
    state=LeaseState.RUNNING,
    host_id="h",
    owner_id="o",
    offer_id="f",
    gpu=model("RTX 4090"),
    gpus=1,
    dlperf=100.0,
    gpu_rate=money.per_hour("0.30"),
    disk_rate=money.per_hour("0.01"),
    disk_gb=20.0,
    opened_at=NOW,
    state_since=NOW,
    bills=Bills.GPU_AND_DISK,
    accrued_until=NOW,
    intent_id="i1",
    host_floor=money.per_hour("0.25"),
)
NAMED = ("gpubid_slot_bid", "gpubid_slot_floor", "gpubid_avoided_until")
INTENT = Intent("i2", IntentKind.RENT, IntentState.IN_DOUBT, "vast", Slot("train", 1), NOW, "best_offer")
INTENT = dataclasses.replace(INTENT, rate=money.per_hour("0.40"), doubted_at=NOW)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def figures(registry: CollectorRegistry) -> Metrics:
    return Metrics(registry, markets=["vast"], workloads=["train"])


def fleet(**changes: object) -> Fleet:
    view = MarketView(market="vast", is_fresh=True, listed_at=NOW, credit=money.usd(9), clock_skew_seconds=-2.0)
    base = Fleet("f", NOW, 0.0, NOW, (WORK,), {"vast": view}, (LEASE,), (INTENT,), Spend(money.usd(1), money.usd(5)))
    return msgspec.structs.replace(base, **changes)


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"gpubid_{name}", labels)


def test_everything_known_stands_at_zero_from_the_start(registry: CollectorRegistry, figures: Metrics) -> None:
    figures.see_intents([])
    for cause in Cause:
        assert value(registry, "interruptions_total", workload="train", market="vast", cause=cause.value) == 0
    for kind in IntentKind:
        assert value(registry, "intents_total", kind=kind.value, outcome="rejected") == 0
    assert value(registry, "market_requests_total", market="vast", operation="rent", outcome="ambiguous") == 0
    assert value(registry, "spend_dollars_total", workload="train", market="vast", tenure="on_demand") == 0
    assert value(registry, "leases", market="vast", tenure="interruptible", state="running") == 0


def test_credit_and_capability_have_no_sample_before_they_are_known(
    registry: CollectorRegistry, figures: Metrics
) -> None:
    assert value(registry, "credit_dollars", market="vast") is None
    assert value(registry, "market_capability", market="vast", tenure="interruptible") is None
    view = MarketView(market="vast", is_fresh=True, listed_at=NOW)
    figures.see_fleet(fleet(markets={"vast": view}))
    assert value(registry, "credit_dollars", market="vast") is None, "paid in arrears"
    assert value(registry, "market_capability", market="vast", tenure="interruptible") == 1


def test_every_outcome_of_a_call_is_known_at_the_start() -> None:
    kinds = [market_errors.MarketError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert {kind.code for kind in kinds} - {"market_error"} <= set(metric_families.OUTCOMES)


def test_every_limit_is_known_at_the_start() -> None:
    strikes = re.findall(r'Strike\("(\w+)"', Path(limits.__file__).read_text())
    assert strikes
    assert set(strikes) <= set(metric_families.LIMITS)


def test_what_a_market_stopped_selling(registry: CollectorRegistry, figures: Metrics) -> None:
    seen = fleet()
    view = msgspec.structs.replace(seen.markets["vast"], not_sold={Tenure.INTERRUPTIBLE: "it says so"})
    figures.see_fleet(msgspec.structs.replace(seen, markets={"vast": view}))
    assert value(registry, "market_capability", market="vast", tenure="interruptible") == 0
    assert value(registry, "market_capability", market="vast", tenure="on_demand") == 1


def test_the_fleet_as_it_is(registry: CollectorRegistry, figures: Metrics) -> None:
    figures.see_fleet(fleet())
    assert value(registry, "market_available", market="vast") == 1
    assert value(registry, "market_view_timestamp_seconds", market="vast") == NOW.timestamp()
    assert value(registry, "credit_dollars", market="vast") == 9
    assert value(registry, "market_capability", market="vast", tenure="interruptible") == 1
    assert value(registry, "clock_skew_seconds", market="vast") == -2
    assert value(registry, "leases", market="vast", tenure="interruptible", state="running") == 1
    assert value(registry, "slots_wanted", workload="train") == 2
    assert value(registry, "slots_running", workload="train") == 1
    assert value(registry, "bid_headroom_ratio", workload="train") == pytest.approx(0.2)
    assert value(registry, "intents_in_doubt") == 1
    assert value(registry, "oldest_in_doubt_timestamp_seconds") == NOW.timestamp()
    assert value(registry, "spend_dollars_per_hour") == pytest.approx(0.71), "doubt counts as spend"
    assert value(registry, "spent_dollars", window="day") == 1
    assert value(registry, "spent_dollars", window="month") == 5


def test_what_protections_let_rest_is_counted(registry: CollectorRegistry, figures: Metrics) -> None:
    assert set(metric_families.PROTECTIONS) == {each.name for each in protections.ALL}
    rests = (
        Cooldown(CooldownKind.STORM, "vast/RTX 4090", NOW + timedelta(minutes=1), "why"),
        Cooldown(CooldownKind.STORM, "vast/RTX 3090", NOW, "over"),
        Cooldown(CooldownKind.OFFER, "7", NOW + timedelta(minutes=1), "no protection"),
    )
    figures.see_fleet(fleet(cooldowns=rests))
    assert value(registry, "protection_cooldowns", protection="storm") == 1
    assert value(registry, "protection_cooldowns", protection="owner") == 0


def test_each_slot_has_its_bid_and_floor_while_it_has_one(registry: CollectorRegistry, figures: Metrics) -> None:
    figures.see_fleet(fleet())
    place = {"workload": "train", "slot": "train/0", "market": "vast"}
    assert value(registry, "slot_bid_dollars_per_hour", **place) == pytest.approx(0.30)
    assert value(registry, "slot_floor_dollars_per_hour", **place) == pytest.approx(0.25)
    figures.see_fleet(fleet(leases=()))
    assert value(registry, "slot_bid_dollars_per_hour", **place) is None
    assert value(registry, "slot_floor_dollars_per_hour", **place) is None


@pytest.mark.parametrize("market", ["vast", "runpod"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_slot_that_moves_has_bid_and_floor_of_its_new_lease_alone(
    registry: CollectorRegistry, figures: Metrics, market: str, order: int
) -> None:
    new = msgspec.structs.replace(
        LEASE,
        lease_id="l2",
        market=market,
        opened_at=NOW + timedelta(minutes=5),
        gpu_rate=money.per_hour("0.20"),
        host_floor=None,
    )
    figures.see_fleet(fleet(leases=(LEASE, new)[::order]))
    place = {"workload": "train", "slot": "train/0", "market": market}
    assert value(registry, "slot_bid_dollars_per_hour", **place) == pytest.approx(0.20)
    assert value(registry, "slot_floor_dollars_per_hour", **place) is None, "the floor of the other's host"
    assert generate_latest(registry).decode().count("gpubid_slot_bid_dollars_per_hour{") == 1


def test_what_gets_no_rent_is_named_and_bounded(registry: CollectorRegistry, figures: Metrics) -> None:
    late = NOW + timedelta(hours=1)
    hosts = [Cooldown(CooldownKind.HOST, f"vast/{n}", NOW + timedelta(minutes=n), "why") for n in range(40)]
    others = [
        Cooldown(CooldownKind.STORM, "vast/RTX 4090", late, "why"),
        Cooldown(CooldownKind.OFFER, "7", late, "an offer is no host"),
    ]
    figures.see_fleet(fleet(cooldowns=(*hosts, *others)))
    assert value(registry, "avoided_until_timestamp_seconds", kind="model", target="vast/RTX 4090") == late.timestamp()
    until = (NOW + timedelta(minutes=39)).timestamp()
    assert value(registry, "avoided_until_timestamp_seconds", kind="host", target="vast/39") == until
    assert generate_latest(registry).decode().count("gpubid_avoided_until_timestamp_seconds{") == 20
    figures.see_fleet(fleet(cooldowns=()))
    assert "gpubid_avoided_until_timestamp_seconds{" not in generate_latest(registry).decode()


def test_what_guards_measured_has_a_series_a_figure_and_none_where_nothing_was(
    registry: CollectorRegistry, figures: Metrics
) -> None:
    figures.named.see_measured({"train": {"restore_seconds": 31.0, "checkpoint_bytes": 5e9}, "other": {}})
    assert value(registry, "measured_checkpoint_seconds", workload="train", figure="restore") == 31
    assert value(registry, "measured_checkpoint_bytes", workload="train") == 5e9
    assert generate_latest(registry).decode().count("gpubid_measured_checkpoint_seconds{") == 1
    figures.named.see_measured({})
    assert "gpubid_measured_checkpoint_seconds{" not in generate_latest(registry).decode()
    assert value(registry, "measured_checkpoint_bytes", workload="train") is None


def test_what_is_gone_is_shown_as_gone(registry: CollectorRegistry, figures: Metrics) -> None:
    figures.see_fleet(fleet())
    down = MarketView(market="vast", is_fresh=False, listed_at=NOW)
    figures.see_fleet(
        fleet(
            leases=(msgspec.structs.replace(LEASE, state=LeaseState.ENDED, bills=Bills.NOTHING),),
            intents=(),
            markets={"vast": down},
        )
    )
    assert value(registry, "market_available", market="vast") == 0
    assert value(registry, "market_view_timestamp_seconds", market="vast") == NOW.timestamp()
    assert value(registry, "leases", market="vast", tenure="interruptible", state="running") == 0
    assert value(registry, "slots_running", workload="train") == 0
    assert value(registry, "bid_headroom_ratio", workload="train") == 0
    assert value(registry, "intents_in_doubt") == value(registry, "oldest_in_doubt_timestamp_seconds") == 0
    assert value(registry, "spend_dollars_per_hour") == 0


def test_a_removed_workload_has_no_gauges_and_keeps_its_counters(registry: CollectorRegistry, figures: Metrics) -> None:
    figures.see_fleet(fleet())
    figures.see_risks(["train"], {"train"})
    figures.see_prices("vast", "train", money.per_hour("0.2"), money.per_hour("0.5"), is_answered=True)
    figures.see_charge("train", "vast", Tenure.ON_DEMAND, money.usd(1))
    renamed = fleet(workloads=(dataclasses.replace(WORK, name="serve"),), leases=())
    figures.see_fleet(renamed)
    left = {
        family.type
        for family in registry.collect()
        for sample in family.samples
        if sample.labels.get("workload") == "train"
    }
    assert left == {"counter"}
    assert value(registry, "slots_wanted", workload="serve") == 2
    assert value(registry, "spend_dollars_total", workload="train", market="vast", tenure="on_demand") == 1
    figures.see_fleet(fleet(workloads=(), leases=()))
    assert value(registry, "slots_wanted", workload="serve") is None


def test_two_leases_of_a_moving_slot_are_one_running_slot(registry: CollectorRegistry, figures: Metrics) -> None:
    figures.see_fleet(fleet(leases=(LEASE, msgspec.structs.replace(LEASE, lease_id="l2"))))
    assert value(registry, "slots_running", workload="train") == 1
    assert value(registry, "leases", market="vast", tenure="interruptible", state="running") == 2


def test_what_waits_for_a_person_is_counted(registry: CollectorRegistry, figures: Metrics) -> None:
    figures.see_fleet(fleet(leases=(LEASE, msgspec.structs.replace(LEASE, lease_id="l2", is_held=True))))
    assert value(registry, "orphans") == 1


def test_calls_intents_decisions_and_losses_are_counted(registry: CollectorRegistry, figures: Metrics) -> None:
    figures.observer("vast")("rent", "ambiguous", 0.3)
    figures.see_intents([INTENT, dataclasses.replace(INTENT, state=IntentState.CONFIRMED)])
    figures.see_decisions([decision.Hold(SLOT, decision.Reason("per_day", "cap", limit="per_day"))])
    figures.see_interruption("train", "vast", Cause.OUTBID)
    assert value(registry, "market_requests_total", market="vast", operation="rent", outcome="ambiguous") == 1
    assert value(registry, "market_request_duration_seconds_sum", market="vast", operation="rent") == 0.3
    assert value(registry, "intents_total", kind="rent", outcome="confirmed") == 1
    assert value(registry, "decisions_total", kind="hold", reason="per_day") == 1
    assert value(registry, "limits_struck_total", limit="per_day") == 1
    assert value(registry, "interruptions_total", workload="train", market="vast", cause="outbid") == 1


def test_a_market_at_fault_is_told_until_it_is_none(registry: CollectorRegistry, figures: Metrics) -> None:
    assert value(registry, "market_fault", market="vast") == 0
    figures.see_faults({"vast"}, ["vast"])
    assert value(registry, "market_fault", market="vast") == 1
    figures.see_faults((), ["vast"])
    assert value(registry, "market_fault", market="vast") == 0


def test_cycles_reloads_money_and_useful_time(registry: CollectorRegistry, figures: Metrics) -> None:
    figures.see_cycle(0.2, NOW, is_good=True)
    figures.see_cycle(0.2, datetime.max.replace(tzinfo=UTC), is_good=False)
    figures.see_reload(NOW, is_good=True)
    figures.see_reload(datetime.max.replace(tzinfo=UTC), is_good=False)
    figures.see_charge("train", "vast", Tenure.ON_DEMAND, money.usd("0.25"))
    figures.see_charge("train", "vast", Tenure.ON_DEMAND, money.usd("-0.25"))
    figures.see_useful("train", 60.0)
    assert value(registry, "cycle_duration_seconds_count") == 2
    assert value(registry, "cycles_failed_total") == 1
    assert value(registry, "cycle_last_success_timestamp_seconds") == NOW.timestamp()
    assert value(registry, "config_last_reload_successful") == 0
    assert value(registry, "config_last_reload_success_timestamp_seconds") == NOW.timestamp()
    assert value(registry, "spend_dollars_total", workload="train", market="vast", tenure="on_demand") == 0.25
    assert value(registry, "useful_seconds_total", workload="train") == 60
    assert value(registry, "on_demand_worth_dollars_total", workload="train") is None, "no price is no worth of zero"


def test_caps_are_shown_and_none_stands_at_zero(registry: CollectorRegistry, figures: Metrics) -> None:
    figures.see_caps(money.per_hour("1.5"), money.usd(12), None)
    assert value(registry, "budget_dollars_per_hour") == 1.5
    assert value(registry, "budget_dollars", window="day") == 12
    assert value(registry, "budget_dollars", window="month") == 0


def test_a_reason_that_is_no_code_or_one_too_many_is_other() -> None:
    code = metric_updates.Codes(["known"])
    assert code("known") == "known"
    assert code("host 7 refused") == "other"
    assert code("x" * 49) == "other"
    assert len({code(f"reason_{number}") for number in range(1000)}) == 64
    assert code("known") == "known"


def test_names_follow_the_rules(registry: CollectorRegistry, figures: Metrics) -> None:
    figures.see_fleet(fleet())
    text = generate_latest(registry).decode()
    assert "_created" not in text
    for family in text_string_to_metric_families(text):
        assert family.name.startswith("gpubid_")
        assert family.documentation.endswith(".")
        assert family.type == "counter" or not family.name.endswith("_total")
        labels = {label for sample in family.samples for label in sample.labels}
        assert not labels & {"id", "lease", "intent", "instance", "host", "offer", "error"}


def test_a_registry_tells_of_the_process() -> None:
    assert metric_families.registry().get_sample_value("process_resident_memory_bytes")


@pytest.mark.parametrize(("markets", "workloads", "slots"), [(1, 1, 1), (1, 1, 500), (2, 5, 3), (2, 60, 20)])
def test_samples_are_bounded_by_the_configuration_alone(
    registry: CollectorRegistry, markets: int, workloads: int, slots: int
) -> None:
    mine = Metrics(registry, [f"m{n}" for n in range(markets)], [f"w{n}" for n in range(workloads)])
    for number in range(1000):
        mine.see_decisions([decision.Hold(SLOT, decision.Reason(f"code_{number}", "why", limit=f"limit_{number}"))])
        mine.observer("m0")("rent", f"outcome_{number}", 0.1)
    places = [Slot(f"w{number}", index) for number in range(workloads) for index in range(slots)]
    leases = tuple(msgspec.structs.replace(LEASE, slot=place, market=f"m{place.index % markets}") for place in places)
    view = fleet().markets["vast"]
    late = NOW + timedelta(hours=1)
    mine.see_fleet(
        fleet(
            workloads=tuple(dataclasses.replace(WORK, name=f"w{n}", slots=slots) for n in range(workloads)),
            markets={f"m{n}": msgspec.structs.replace(view, market=f"m{n}") for n in range(markets)},
            leases=leases,
            cooldowns=tuple(Cooldown(CooldownKind.HOST, f"m0/{n}", late, "why") for n in range(1000)),
        )
    )
    named = sum(len(family.samples) for family in registry.collect() if family.name.startswith(NAMED))
    assert named == 2 * len(places) + 20
    samples = sum(len(family.samples) for family in registry.collect())
    others = samples - named
    assert others <= 1000 + 350 * markets + 40 * workloads + 10 * markets * workloads


async def test_a_bill_that_differs_by_rounding_is_no_drift_and_one_that_left_has_no_sample(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        registry = CollectorRegistry()
        see = Figures(Metrics(registry, ["vast", "runpod"], ["train"])).see
        done = await world.cycle()
        cent = Drift("vast", NOW.date(), money.usd("0.020"), money.usd("0.024"))
        dollar = Drift("runpod", NOW.date(), money.usd(9), money.usd(10))
        world.app.billing_watch.drifts = (cent, dollar)
        see(world.app, done)
        assert value(registry, "bill_drift_ratio", market="vast") == 0
        assert value(registry, "bill_drift_ratio", market="runpod") == pytest.approx(0.1)
        world.app.billing_watch.drifts = (cent,)
        see(world.app, done)
        assert value(registry, "bill_drift_ratio", market="runpod") is None
