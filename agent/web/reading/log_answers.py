"""Which log a person means: the present one, from the market, or one that was kept beside the ledger."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.act.kept_logs import kept_log
from agent.act.kept_logs.kept_log import KeptLog
from agent.domain.record.lease import Lease, LeaseState
from agent.markets.port import Market
from agent.web.reading import container_logs

LIVE = frozenset({LeaseState.STARTING, LeaseState.RUNNING})


@dataclass(frozen=True, slots=True)
class LogQuestion:
    """A slot, a workload or a lease, and the number of lines; of a given lease, or of the time before the present."""

    slot: str
    lines: int
    lease: str = ""
    is_previous: bool = False

    def query(self) -> dict[str, str]:
        """Return it as the query of GET /logs."""
        more = {"lease": self.lease} if self.lease else {}
        return {"slot": self.slot, "lines": str(self.lines), **more} | ({"previous": "1"} if self.is_previous else {})


def asked(query: Mapping[str, str]) -> LogQuestion | None:
    """Return the question in a query; None if it has no readable number of lines."""
    lines = query.get("lines", "100")
    if not lines.isascii() or not lines.isdecimal() or len(lines) > len(str(container_logs.MOST_LINES)) + 1:
        return None
    return LogQuestion(query.get("slot", ""), int(lines), query.get("lease", ""), query.get("previous", "") == "1")


async def answer(
    question: LogQuestion, leases: Sequence[Lease], markets: Mapping[str, Market], ledger: Path
) -> dict[str, Any]:
    """Return the lines of a log as JSON, or an `error` with the reason why there are none."""
    said = await kept(question, leases, ledger)
    if said is not None:
        return said
    return await container_logs.read(question.lease or question.slot, question.lines, leases, markets)


async def kept(question: LogQuestion, leases: Sequence[Lease], ledger: Path) -> dict[str, Any] | None:
    """Return a kept log as JSON, or an `error`; None if the market is to be asked."""
    if not question.lease and not question.is_previous:
        return None
    of_lease = next((lease for lease in leases if lease.lease_id == question.lease), None)
    if of_lease is not None and question.slot not in _names(of_lease):
        return {"error": "no_lease", "sentence": f"{question.lease} is a lease of {of_lease.slot}"}
    if of_lease is not None and of_lease.state in LIVE and not question.is_previous:
        return None
    try:
        found = await asyncio.to_thread(_found, question, leases, ledger)
    except OSError as error:
        folder = kept_log.folder_of(ledger)
        sentence = f"{folder} cannot be read ({error.strerror}); run this as the daemon's user"
        return {"error": "unreadable", "sentence": sentence}
    # A paused instance may still have its log.
    return None if found is None and of_lease is not None and not question.is_previous else _shown(question, found)


def _found(question: LogQuestion, leases: Sequence[Lease], ledger: Path) -> tuple[KeptLog, list[str]] | None:
    rows = kept_log.headers(kept_log.folder_of(ledger))
    files = {id(header): file for header, file in rows}
    mine = [header for header, _ in rows if not question.lease or header.lease == question.lease]
    now = container_logs.lease_of(question.lease or question.slot, leases) if question.is_previous else None
    present = (now.lease_id, now.runs) if now is not None and now.state in LIVE else None
    header = kept_log.previous(mine, question.slot, present)
    return None if header is None else (header, kept_log.lines_of(files[id(header)]))


def _shown(question: LogQuestion, found: tuple[KeptLog, list[str]] | None) -> dict[str, Any]:
    whom = question.lease or question.slot
    if found is None:
        sentence = f"no log of {whom!r} is kept; `gpubid ledger events` shows its leases"
        return {"error": "no_log", "sentence": sentence}
    header, lines = found
    if header.problem:
        sentence = f"the log of {header.lease} could not be kept ({header.moment}): {header.problem}"
        return {"error": "no_log", "sentence": sentence}
    return {
        "slot": header.slot,
        "lease": header.lease,
        "lines": lines[-question.lines :],
        "kept": {"at": header.taken_at.isoformat(), "moment": header.moment, "run": header.run},
    }


def _names(lease: Lease) -> set[str]:
    return {str(lease.slot), lease.slot.workload, lease.lease_id}
