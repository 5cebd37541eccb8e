"""The check of `gpubid doctor` of the ssh keys: by which way they come to the instances of each market."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.cli.setup.doctor_checks import Line, Verdict
from agent.cli.shared import ledger_access
from agent.markets import registered_markets

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.domain.record.lease import Lease


async def keys(config: "Config") -> list[Line]:
    """Return a line for each market, if a workload names keys."""
    names = {work.name for work in config.workloads if work.ssh_keys}
    if not names:
        return []
    leases = await _leases(config)
    return [
        _line(each.name, [lease for lease in leases if lease.market == each.name and lease.slot.workload in names])
        for each in config.markets
    ]


def _line(market: str, leases: "Sequence[Lease]") -> Line:
    name = f"ssh keys {market}"
    record = registered_markets.record(market)
    if not record.registers_keys:
        return Line(name, Verdict.OK, f"they are {record.keys_at_start}")
    way = f"registered with each instance by the API of {market} once it runs, and read back"
    running = [lease for lease in leases if lease.run_since is not None]
    missing = [lease.lease_id for lease in running if not lease.has_keys]
    if not missing:
        return Line(name, Verdict.OK, f"{way}; {len(running)} running instance(s) have them")
    sentence = f"{way}; {market} does not show them on {', '.join(missing[:5])}"
    return Line(name, Verdict.WARN, sentence, "wait two minutes after a start; then see `gpubid ledger events`")


async def _leases(config: "Config") -> "Sequence[Lease]":
    from agent.clock import SystemClock
    from agent.ledger.ledger_errors import LedgerError
    from agent.ledger.reader import open_reader

    if not ledger_access.may_read(config) or ledger_access.is_missing(config):
        return ()
    try:
        reader = await open_reader(ledger_access.place_of(config))
    except LedgerError:
        return ()
    try:
        return (await reader.recollection(SystemClock().now())).leases
    finally:
        await reader.close()
