"""The learned figures as JSON: markets, their pools, owners and hosts, each with its evidence."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from agent.decide.deadline import availability, availability_by_market, hazards, regimes
from agent.decide.pricing import host_record, measured_speed, rival_bids, useful_hour
from agent.domain.market import clock_events, market_notice
from agent.domain.market.capacity import Capacity, Counts
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HALF_LIFE, HostKey, HostRecord, decayed
from agent.domain.market.market_notice import NoticeGiven
from agent.domain.market.outbids import STEPS
from agent.domain.record.host_check import HostCheck

SPEEDS = (
    "matmul_tflops",
    "copy_to_gpu_gbps",
    "copy_from_gpu_gbps",
    "disk_write_mbps",
    "power_share",
    "pcie_generation",
    "pcie_width",
    "pcie_share",
)
"""The figures of the last check."""


def learned(
    records: Iterable[HostRecord],
    pools: Iterable[Capacity],
    now: datetime,
    given: Iterable[NoticeGiven] = (),
    checks: Iterable[HostCheck] = (),
) -> dict[str, Any]:
    """Return rates an hour, chances, speeds and notices, with their exposure. Counts of hosts are decayed to `now`."""
    known, hosts, notices, checked = list(pools), list(records), list(given), list(checks)
    markets: dict[str, list[HostRecord]] = {each.market: [] for each in known}
    for record in hosts:
        markets.setdefault(record.market, []).append(record)
    return {
        "now": now.isoformat(),
        "half_life_days": HALF_LIFE.days,
        "hazards": availability.version(hazards.SHIPPED),
        "rivals": _rivals(host_record.total(hosts, now)),
        "markets": [
            _market(name, mine, now)
            | {"pools": [_pool(each) for each in known if each.market == name], "notice": notice(name, notices)}
            | {"speeds": _speeds([check for check in checked if check.market == name])}
            for name, mine in sorted(markets.items())
        ],
    }


def notice(market: str, given: Iterable[NoticeGiven]) -> dict[str, Any]:
    """Return the notice that losses to the market gave, once there are enough losses."""
    measured = market_notice.of(market, given)
    return {
        "losses": measured.losses,
        "signalled_share": measured.signalled / measured.losses if measured.is_known else None,
        "seconds": measured.seconds if measured.is_known else None,
        "sentence": measured.sentence,
    }


def _speeds(checks: list[HostCheck]) -> list[dict[str, Any]]:
    """Return the guards' speeds of each host and model, newest checks last, and the host's share of its DLPerf."""
    left, found = measured_speed.speeds(checks), dict[tuple[HostKey, GpuModel], list[HostCheck]]()
    for check in sorted(checks, key=lambda check: check.checked_at):
        found.setdefault((check.host, check.gpu), []).append(check)
    return [
        {
            "host": host.host_id,
            "gpu": model,
            "checks": len(mine),
            "checked_at": mine[-1].checked_at.isoformat(),
            **{name: getattr(mine[-1], name) for name in SPEEDS},
            "slowed_by": _slowed_by(mine[-1]),
            "share_of_dlperf": left.get((host, model)),
        }
        for (host, model), mine in sorted(found.items())
    ]


def _slowed_by(check: HostCheck) -> str | None:
    """Return why the GPUs ran below their clock while they copied; empty if they did not, None if it is not known."""
    return None if check.clock_events is None else clock_events.slowed(check.clock_events)


def _rivals(whole: HostRecord) -> dict[str, Any]:
    """Return the law of rival bids over all hosts, with its counts beside the assumed ones."""
    law = rival_bids.learned(whole)
    return {
        "outbids": sum(whole.outbids.ours),
        "displaced": whole.displaced,
        "assumed_weighs": rival_bids.PRIOR_WEIGHT,
        "displaced_share": law.displaced,
        "steps": [
            {
                "headroom": step,
                "losing_share": law.losing_share(step),
                "assumed": rival_bids.ASSUMED.losing_share(step),
                "ours": ours,
                "rivals": theirs,
            }
            for step, ours, theirs in zip(STEPS, whole.outbids.ours, whole.outbids.rivals, strict=True)
        ],
    }


def _market(name: str, records: list[HostRecord], now: datetime) -> dict[str, Any]:
    rate = host_record.market_hazard(records, now)
    hosts = {record.key: record for record in records}
    judged = host_record.pooled(hosts, now)
    rows = [_row(record, decayed(record, now), judged[record.key], rate) for record in records]
    return {
        "market": name,
        "losses_per_hour": rate,
        "interruptible_hours": host_record.total(records, now).bid_seconds / 3600,
        "owners": _owners(records, rate, now),
        "hosts": sorted(rows, key=lambda row: (-row["running_hours"], row["host"])),
    }


def _pool(known: Capacity) -> dict[str, Any]:
    """Return one pool: its state, the posterior of its quality, and the counts for a fit."""
    return {
        "pool": known.pool,
        "is_there": known.is_there,
        "since": known.since.isoformat(),
        "is_begun": known.is_begun,
        "seen_at": known.seen_at.isoformat(),
        "looks": known.looks,
        "price": known.price.dollars if known.price is not None else None,
        **(_by_regimes(known) if availability_by_market.is_of(known) else _by_models(known)),
        "version": known.version,
        "ages": list(hazards.SHIPPED.edges),
        "there": _counts(known.there),
        "away": _counts(known.away),
    }


def _by_models(known: Capacity) -> dict[str, Any]:
    learned = availability.learned(known)
    belief = learned.belief or hazards.first(hazards.SHIPPED, is_up=known.is_there, age=0.0)
    weights = belief.weights(hazards.SHIPPED)
    rates = hazards.SHIPPED.loss_rates if known.is_there else hazards.SHIPPED.return_rates
    factors = hazards.SHIPPED.factors
    return {
        "turns_per_hour": float(rates[hazards.SHIPPED.bin(belief.age)] @ weights),
        "loss_factor": float(weights @ [loss for loss, _ in factors]),
        "return_factor": float(weights @ [back for _, back in factors]),
        "models": [
            {"losses": loss, "returns": back, "weight": float(weight)}
            for (loss, back), weight in zip(factors, weights, strict=True)
        ],
    }


def _by_regimes(known: Capacity) -> dict[str, Any]:
    """Return the pool of a market that is observed by itself. Factors compare old spells with the average regime."""
    used, belief = regimes.SHIPPED, availability_by_market.belief(known)
    lost, back = (
        used.rates[:, side + 1] / (used.prior @ used.rates[:, side + 1]) for side in (regimes.UP, regimes.DOWN)
    )
    return {
        "turns_per_hour": belief.rate(used),
        "loss_factor": float(belief.shares @ lost),
        "return_factor": float(belief.shares @ back),
        "models": [
            {"losses": float(loss), "returns": float(returned), "weight": float(weight)}
            for loss, returned, weight in zip(lost, back, belief.shares, strict=True)
        ],
    }


def _counts(counts: Counts) -> dict[str, Any]:
    return {"ends": list(counts.ends), "hours": list(counts.hours)}


def _owners(records: list[HostRecord], rate: float, now: datetime) -> list[dict[str, Any]]:
    owners: dict[str, HostRecord] = {}
    for record in records:
        if record.owner_id:
            nothing = HostRecord(record.market, "", record.owner_id)
            owners[record.owner_id] = owners.get(record.owner_id, nothing).plus(decayed(record, now))
    return [
        {
            "owner": owner_id,
            "interruptible_hours": whole.bid_seconds / 3600,
            "losses_to_market": whole.market_losses,
            "losses_per_hour": useful_hour.contested_hazard(whole, rate),
        }
        for owner_id, whole in sorted(owners.items())
    ]


def _row(kept: HostRecord, own: HostRecord, judged: HostRecord, rate: float) -> dict[str, Any]:
    """Return one host: its own counts, and the record that rates it, which includes its owner's other hosts."""
    losses = useful_hour.contested_hazard(judged, rate)
    return {
        "host": own.host_id,
        "owner": own.owner_id,
        "running_hours": own.running_seconds / 3600,
        "interruptible_hours": own.bid_seconds / 3600,
        "losses_to_market": own.market_losses,
        "host_failures": max(own.interruptions - own.market_losses, 0.0),
        "losses_per_hour": losses,
        "hours_to_a_loss": 1 / losses if losses else None,
        "starts_ok": own.starts_ok,
        "starts_failed": own.starts_failed,
        "start_success": useful_hour.start_success(judged),
        "loaded_mbps": own.loaded_gb * 8000 / own.loading_seconds if own.loading_seconds > 0 else None,
        "updated_at": kept.updated_at.isoformat() if kept.updated_at else None,
    }
