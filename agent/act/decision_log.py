"""The log's line for each new decision: slot, host, dollars an hour and why."""

from collections.abc import Iterable
from typing import Any

import structlog

from agent.domain.work.decision import Decision, Hold, Rebid, Rent, Resume, kind_of, slot_of

log = structlog.get_logger("gpubid.record")


def write(news: Iterable[Decision]) -> None:
    """Log decisions that differ from the last one of their slot."""
    for decision in news:
        log.info(
            "decision.held" if isinstance(decision, Hold) else "decision.made",
            kind="hold" if isinstance(decision, Hold) else kind_of(decision).value,
            code=decision.reason.code,
            slot=str(slot_of(decision)),
            why=decision.reason.sentence,
            **_place(decision),
        )


def _place(decision: Decision) -> dict[str, Any]:
    """Return the market and host of a decision, and its dollars per hour; nothing for a hold."""
    if isinstance(decision, Hold):
        return {}
    if isinstance(decision, Rent):
        offer = decision.offer
        return {"market": offer.market, "host": offer.host_id, "dollars_per_hour": decision.rate.dollars}
    lease, rate = decision.lease, decision.lease.billing_rate
    if isinstance(decision, Rebid | Resume):
        rate = lease.disk_rate + (decision.bid if isinstance(decision, Rebid) else lease.most_gpu_rate)
    return {"market": lease.market, "host": lease.host_id, "dollars_per_hour": rate.dollars}
