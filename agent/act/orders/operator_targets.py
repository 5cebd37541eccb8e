"""The host or owner of a target: `host:MARKET/ID`, or `host:ID` if only one market has that id."""

from collections.abc import Iterable

from agent.domain.record.cooldown import Cooldown
from agent.domain.record.lease import Lease
from agent.ledger.memory import Recollection

HOST, OWNER = "host", "owner"


class AmbiguousPlaceError(ValueError):
    """The target names no single market; the sentence says what to write instead."""


def is_place(target: str) -> bool:
    """Return whether a target has the form `host:…` or `owner:…`."""
    kind, _, name = target.partition(":")
    return kind in {HOST, OWNER} and bool(name)


def key(target: str, markets: Iterable[str], known: Recollection) -> str:
    """Return `KIND:MARKET/ID` of a target of that form.

    Raises:
        AmbiguousPlaceError: it names no market, and not exactly one is known to have the id.
    """
    kind, _, name = target.partition(":")
    every = sorted({*markets, *known.hosts, *(lease.market for lease in known.leases)})
    market, _, rest = name.partition("/")
    if rest and market in every:
        return target
    having = sorted(set(_having(kind, name, known)))
    if not having and len(every) == 1:
        having = every
    if len(having) == 1:
        return f"{kind}:{having[0]}/{name}"
    choices = " or ".join(f"{kind}:{each}/{name}" for each in having or every)
    count = (
        f"{kind} {name} is known on {len(having)} markets" if having else f"no market is known to have {kind} {name}"
    )
    raise AmbiguousPlaceError(f"{count}: name the market too, {choices}")


def leases_at(place: str, leases: Iterable[Lease]) -> tuple[Lease, ...]:
    """Return the leases on a host or of an owner, by its whole key."""
    return tuple(lease for lease in leases if place in {f"{HOST}:{lease.host}", f"{OWNER}:{lease.owner}"})


def _having(kind: str, name: str, known: Recollection) -> Iterable[str]:
    """Yield the markets on which a host or owner of this id was seen, or has a cooldown."""
    for lease in known.leases:
        if name == (lease.host_id if kind == HOST else lease.owner_id):
            yield lease.market
    for market, records in known.hosts.items():
        if name in records if kind == HOST else any(record.owner_id == name for record in records.values()):
            yield market
    for rest in known.cooldowns:
        market, _, named = _place_of(rest, kind).partition("/")
        if named == name:
            yield market


def _place_of(rest: Cooldown, kind: str) -> str:
    """Return the MARKET/ID of a cooldown, or an empty text if it is about something else."""
    if rest.scope == kind:
        return rest.key
    return rest.key.removeprefix(f"{kind}:") if rest.key.startswith(f"{kind}:") else ""
