"""The host or owner of a target: `host:MARKET/ID`, or `host:ID` if only one market has that id."""

import difflib
from collections.abc import Iterable, Sequence

from agent.config import problems
from agent.domain.record import hold
from agent.domain.record.hold import Target, TargetKind
from agent.domain.record.lease import Lease
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection

_KINDS = {"host": TargetKind.HOST, "owner": TargetKind.OWNER}


class AmbiguousPlaceError(ValueError):
    """The target names no single market; the sentence says what to write instead."""


def is_place(target: str) -> bool:
    """Return whether a target has the form `host:…` or `owner:…`."""
    kind, _, name = target.partition(":")
    return kind in _KINDS and bool(name)


def place(target: str, markets: Iterable[str], known: Recollection) -> Target:
    """Return the host or owner that a target of that form means.

    Raises:
        AmbiguousPlaceError: it names no market, and not exactly one is known to have the id.
    """
    named, _, name = target.partition(":")
    kind = _KINDS[named]
    every = sorted({*markets, *known.hosts, *(lease.market for lease in known.leases)})
    market, _, rest = name.partition("/")
    if not rest and market in every:
        sentence = f"{market} is a market: write {kind}:{market}/ID for one {kind}, or market:{market} for all of it"
        raise AmbiguousPlaceError(sentence)
    if rest and market in every:
        return Target(kind, name)
    if rest:
        raise AmbiguousPlaceError(f"no market is named {market!r}; markets: {', '.join(every)}")
    having = sorted(set(_having(kind, name, known)))
    if not having and len(every) == 1:
        having = every
    if len(having) == 1:
        return Target(kind, f"{having[0]}/{name}")
    choices = " or ".join(f"{kind}:{each}/{name}" for each in having or every)
    count = (
        f"{kind} {name} is known on {len(having)} markets" if having else f"no market is known to have {kind} {name}"
    )
    raise AmbiguousPlaceError(f"{count}: name the market too, {choices}")


def unknown(target: str, workloads: Sequence[Workload], leases: Iterable[Lease]) -> str:
    """Return the message for a target that names nothing, with the slots of its workload, or the nearest name."""
    for work in workloads:
        if target.rpartition("/")[0] == work.name:
            return problems.no_slot(work.name, len(work.places), target)
    names, ids = [work.name for work in workloads], sorted(lease.lease_id for lease in leases)
    # Ids of leases differ in a digit or two: the nearest one of an ended lease is that of the lease after it.
    close = difflib.get_close_matches(target, names, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    known = f"workloads: {', '.join(names)}; open leases: {', '.join(ids) or 'none'}"
    return f"no workload, slot or lease is named {target!r}; {known}{hint}"


def leases_at(target: Target, leases: Iterable[Lease]) -> tuple[Lease, ...]:
    """Return the leases on a host, of an owner or on a market."""
    return tuple(lease for lease in leases if target in hold.of_place(lease.host, lease.owner))


def _having(kind: TargetKind, name: str, known: Recollection) -> Iterable[str]:
    """Yield the markets on which a host or owner of this id was seen, or has a cooldown."""
    for lease in known.leases:
        if name == (lease.host_id if kind is TargetKind.HOST else lease.owner_id):
            yield lease.market
    for market, records in known.hosts.items():
        if name in records if kind is TargetKind.HOST else any(record.owner_id == name for record in records.values()):
            yield market
    held = (each.target.name for each in known.holds if each.target.kind is kind)
    for place in (*held, *(rest.key for rest in known.cooldowns if rest.kind.value == kind.value)):
        market, _, named = place.partition("/")
        if named == name:
            yield market
