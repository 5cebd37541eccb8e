"""What must hold of every rehearsal, whatever the climate: judged from its figures and from the ledger's own events."""

from collections.abc import Iterator

from agent.cli.rehearsal import Rehearsal

SPEND_SHARE = 0.01
SPEND_DOLLARS = 0.02
ZEROS = ("orphans", "double_rents", "over_cap")
UP = frozenset({"lease.running", "lease.resumed"})
DOWN = frozenset(
    {
        "lease.interrupted",
        "lease.paused",
        "lease.missing",
        "lease.gone",
        "lease.offline",
        "lease.exited",
        "lease.failed",
    }
)


def wrong(told: Rehearsal) -> list[str]:
    """Return what does not hold, one sentence each."""
    return [*_zeros(told), *_spend(told), *_healthy_releases(told)]


def _zeros(told: Rehearsal) -> Iterator[str]:
    for name in ZEROS:
        if told.figures[name]:
            yield f"{name} is {told.figures[name]}, not 0"


def _spend(told: Rehearsal) -> Iterator[str]:
    spend, charged = told.figures["spend"], told.figures["charged"]
    if abs(spend - charged) > max(SPEND_SHARE * charged, SPEND_DOLLARS):
        yield f"the ledger says ${spend:.4f}, the market charged ${charged:.4f}"


def _healthy_releases(told: Rehearsal) -> Iterator[str]:
    """Name every release of a lease that ran as far as the ledger knew, other than after a move to a better one."""
    up: set[str] = set()
    for event in told.events:
        if event.kind in UP:
            up.add(event.lease_id)
        elif event.kind in DOWN:
            up.discard(event.lease_id)
        elif event.kind == "lease.released_by_us" and event.lease_id in up and event.reason_code != "moved":
            yield f"{event.lease_id} was released while it ran: {event.reason_code}: {event.reason}"
