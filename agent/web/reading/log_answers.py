"""Which log a person means: the present one, from the market, or one that was kept beside the ledger."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.act.kept_logs import kept_log
from agent.act.kept_logs.kept_log import KeptLog
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.ledger.reader import Reader
from agent.markets.port import Market
from agent.web.reading import bucket_logs, container_logs

LIVE = frozenset({LeaseState.STARTING, LeaseState.RUNNING})


@dataclass(frozen=True, slots=True)
class LogQuestion:
    """A slot, a workload or a lease, and the number of lines; of a given lease, or of the time before the present."""

    slot: str
    lines: int
    lease: str = ""
    is_previous: bool = False

    def query(self) -> dict[str, str]:
        """Return the question as the query of GET /logs."""
        more = {"lease": self.lease} if self.lease else {}
        return {"slot": self.slot, "lines": str(self.lines), **more} | ({"previous": "1"} if self.is_previous else {})


def asked(query: Mapping[str, str]) -> LogQuestion | None:
    """Return the question in a query; None if it has no readable number of lines."""
    lines = query.get("lines", "100")
    if not lines.isascii() or not lines.isdecimal() or len(lines) > len(str(container_logs.MOST_LINES)) + 1:
        return None
    return LogQuestion(query.get("slot", ""), int(lines), query.get("lease", ""), query.get("previous", "") == "1")


@dataclass(frozen=True, slots=True)
class Grounds:
    """The data for an answer. `secret` gives the key of a bucket by the name of its credential."""

    known: Recollection
    reader: Reader
    workloads: Sequence[Workload]
    fleet_id: str
    ledger: Path
    secret: Callable[[str], str]
    now: datetime


async def answer(question: LogQuestion, grounds: Grounds, markets: Mapping[str, Market]) -> dict[str, Any]:
    """Return the lines of a log as JSON, or an `error` with the reason why there are none."""
    said = await past(question, grounds)
    if said is not None:
        return said
    whom = question.lease or question.slot
    return await container_logs.read(whom, question.lines, grounds.known.leases, markets)


async def past(question: LogQuestion, grounds: Grounds) -> dict[str, Any] | None:
    """Return a log of the past as JSON, or an `error`; None if the market is to be asked.

    The bucket of a guard has the whole output, the files beside the ledger the last lines.
    """
    said = await kept(question, grounds.known.leases, grounds.ledger)
    said = said or container_logs.none_kept(question.lease or question.slot, grounds.known.leases)
    if said is None or said.get("error") in {"no_lease", "unreadable"}:
        return said
    lease = str(said.get("lease") or question.lease)
    where = (grounds.reader, grounds.known, grounds.workloads, grounds.fleet_id)
    wanted = (
        await bucket_logs.of_lease(*where, lease)
        if lease
        else await bucket_logs.before_the_present(*where, question.slot)
    )
    if wanted is None:
        return said
    lines, problem = await bucket_logs.read(wanted, question.lines, grounds.secret, is_previous=question.is_previous)
    if lines:
        return bucket_logs.shown(wanted, lines, grounds.now.isoformat())
    if "error" in said and problem:
        return {**said, "sentence": f"{said['sentence']}; its bucket cannot tell: {problem}"}
    return said


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
