"""Plain nouns that tests can change. Each has the values of a quiet day at `NOW`."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from agent.decide.limits import limits
from agent.decide.pricing.useful_hour import StayCost, Way
from agent.decide.strategy import Candidate, Params, Strategy, Tuned
from agent.domain import money
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market import gpu
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.domain.market.label import Label
from agent.domain.market.market_rules import ASSUMED
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.guard_terms import Bucket, GuardTerms
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Requirements, Workload
from agent.markets.runpod.rules import RULES as RUNPOD

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
FLEET_ID = "f1ee7f1ee7f1"
RTX_4090 = gpu.model("RTX 4090")
NO_LIMITS = limits.Limits()
TRAIN_0 = Slot("train", 0)


def per_hour(dollars: float | str) -> UsdPerHour:
    """Return a rate in dollars per hour."""
    return money.per_hour(dollars)


def usd(dollars: float | str) -> Usd:
    """Return an amount in dollars."""
    return money.usd(dollars)


def ago(**span: float) -> datetime:
    """Return the instant that long before `NOW`."""
    return NOW - timedelta(**span)


def offer(number: int = 1, **changes: Any) -> Offer:
    """Build one RTX 4090 with a floor of $0.20 and an ask of $0.40, on a separate host."""
    values: dict[str, Any] = {
        "market": "vast",
        "offer_id": f"a{number}",
        "host_id": f"h{number}",
        "owner_id": f"o{number}",
        "gpu": RTX_4090,
        "gpus": 1,
        "vram_mb": 24564,
        "dlperf": 80.0,
        "reliability": 0.99,
        "is_verified": True,
        "is_datacenter": True,
        "network_volumes": ("nv1",),
        "region": "Sweden, SE",
        "inet_down_mbps": 800.0,
        "inet_up_mbps": 400.0,
        "disk_gb": 200.0,
        "ask": per_hour("0.40"),
        "floor": per_hour("0.20"),
        "storage_micros_per_gb_month": 150_000,
        "traffic_down_micros_per_gb": 5_000,
        "traffic_up_micros_per_gb": 5_000,
        "ends_at": None,
        "seen_at": NOW,
    }
    return Offer(**{**values, **changes})


def requirements(**changes: Any) -> Requirements:
    """Build requirements that the built offer meets."""
    return Requirements(**{"gpu_models": (RTX_4090,), **changes})


def workload(name: str = "train", **changes: Any) -> Workload:
    """Build a workload of one slot with remote checkpoints, worth $1 per hour."""
    values: dict[str, Any] = {
        "name": name,
        "image": "ubuntu:22.04",
        "max_price": per_hour("1.00"),
        "strategy": "patient",
        "requirements": requirements(),
        "checkpoint": Checkpoint(place=CheckpointPlace.REMOTE),
    }
    return Workload(**{**values, **changes})


def slot(name: str = "train", index: int = 0) -> Slot:
    """Return a slot."""
    return Slot(name, index)


def guarded(name: str = "train", **changes: Any) -> Workload:
    """Build a workload whose guard keeps its work in a bucket."""
    place = Bucket("http://127.0.0.1:9000", "us-east-1", "runs", name, "train_bucket")
    return workload(name, **{"command": "python train.py", "guard": GuardTerms(("/w",), bucket=place), **changes})


def lease(number: int = 1, **changes: Any) -> Lease:
    """Build a lease that has run for an hour at a bid of $0.22, metered up to `NOW`."""
    state = changes.get("state", LeaseState.RUNNING)
    runs = state is LeaseState.RUNNING
    values: dict[str, Any] = {
        "lease_id": f"vast-{number}",
        "market": "vast",
        "instance_id": f"{number}",
        "slot": TRAIN_0,
        "tenure": Tenure.INTERRUPTIBLE,
        "state": state,
        "host_id": f"h{number}",
        "owner_id": f"o{number}",
        "offer_id": f"a{number}",
        "gpu": RTX_4090,
        "gpus": 1,
        "dlperf": 80.0,
        "gpu_rate": per_hour("0.22"),
        "disk_rate": per_hour("0.004"),
        "disk_gb": 20.0,
        "opened_at": ago(hours=1),
        "state_since": ago(hours=1),
        "bills": Bills.GPU_AND_DISK if runs else Bills.DISK,
        "accrued_until": NOW,
        "intent_id": f"{number:016x}",
        "ask": per_hour("0.40"),
        "host_floor": per_hour("0.20"),
        "has_run": state is not LeaseState.STARTING,
        "run_since": ago(hours=1) if runs else None,
        "proven_at": ago(hours=1),
    }
    return Lease(**{**values, **changes})


def instance(number: int = 1, **changes: Any) -> Instance:
    """Build the running instance of the built lease of the same number."""
    values: dict[str, Any] = {
        "market": "vast",
        "instance_id": f"{number}",
        "label": "",
        "host_id": f"h{number}",
        "owner_id": f"o{number}",
        "tenure": Tenure.INTERRUPTIBLE,
        "state": InstanceState.RUNNING,
        "gpu": RTX_4090,
        "gpus": 1,
        "gpu_rate": per_hour("0.22"),
        "disk_rate": per_hour("0.004"),
        "disk_gb": 20.0,
        "created_at": ago(hours=1),
        "ends_at": None,
    }
    return Instance(**{**values, **changes})


def intent(number: int = 1, **changes: Any) -> Intent:
    """Build a rent of the built offer, in doubt for a minute."""
    values: dict[str, Any] = {
        "intent_id": f"{number:016x}",
        "kind": IntentKind.RENT,
        "state": IntentState.IN_DOUBT,
        "market": "vast",
        "slot": TRAIN_0,
        "recorded_at": ago(minutes=1),
        "reason": "the slot is empty",
        "offer_id": f"a{number}",
        "host_id": f"h{number}",
        "tenure": Tenure.INTERRUPTIBLE,
        "price": per_hour("0.22"),
        "rate": per_hour("0.224"),
        "sent_at": ago(minutes=1),
    }
    return Intent(**{**values, **changes})


def label(number: int = 1, *, place: Slot = TRAIN_0, fleet_id: str = FLEET_ID) -> Label:
    """Build the label of the built intent of the same number."""
    return Label(fleet_id, place, f"{number:016x}")


def event(kind: str = "outbid", number: int = 1, **changes: Any) -> MarketEvent:
    """Build a row of the market's inbox about the built instance."""
    values: dict[str, Any] = {
        "event_id": f"e{number}",
        "market": "vast",
        "kind": MarketEventKind(kind),
        "instance_id": f"{number}",
        "at": NOW,
    }
    return MarketEvent(**{**values, **changes})


def view(**changes: Any) -> MarketView:
    """Build a fresh, complete view of a market that may be paid."""
    values: dict[str, Any] = {
        "market": "vast",
        "listed_at": NOW,
        "listed_monotonic": 1000.0,
        "is_fresh": True,
        "listings": 10,
        "is_key_proven": True,
        "credit": usd(50),
        "account_id": "me",
    }
    rules = RUNPOD if changes.get("market") == "runpod" else ASSUMED
    return MarketView(**{**values, "rules": rules, **changes})


def _labelled(of: MarketView, leases: Iterable[Lease]) -> MarketView:
    listed = {row.instance_id for row in of.instances}
    mine = [held for held in leases if held.market == of.market and held.instance_id in listed]
    ours = {held.instance_id: Label(FLEET_ID, held.slot, held.intent_id) for held in mine}
    return msgspec.structs.replace(of, labels={**ours, **of.labels})


def fleet(**changes: Any) -> Fleet:
    """Build a fleet of one workload on one market. An instance of a lease has its label, unless it has another one."""
    values: dict[str, Any] = {
        "fleet_id": FLEET_ID,
        "now": NOW,
        "monotonic": 1000.0,
        "started_at": ago(hours=2),
        "workloads": (workload(),),
        "markets": {"vast": view()},
    }
    made = Fleet(**{**values, **changes})
    return msgspec.structs.replace(
        made, markets={name: _labelled(each, made.leases) for name, each in made.markets.items()}
    )


def candidate(of: Offer | None = None, *, bid: str = "0.22", **figures: Any) -> Candidate:
    """Build a candidate: the built offer at a bid, with simple costs."""
    values: dict[str, Any] = {
        "gpu_dollars": 1.2,
        "disk_dollars": 0.05,
        "traffic_dollars": 0.02,
        "idle_dollars": 0.05,
        "loading_hours": 0.05,
        "restore_hours": 0.02,
        "lost_hours": 0.1,
        "useful_hours": 5.0,
        "hazard": 0.15,
        "dlperf": 80.0,
    }
    return Candidate(of or offer(), Way(Tenure.INTERRUPTIBLE, per_hour(bid)), StayCost(**{**values, **figures}))


def tuned(strategy: Strategy[Any], params: Params, name: str = "patient") -> Tuned:
    """Return a strategy with its numbers."""
    return Tuned(name, strategy, params, digest="0" * 16)
