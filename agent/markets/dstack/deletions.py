"""Runs that somebody deleted on the server although their machines are there, or are not proven gone: they stay listed.

A deletion hides a run in the server's own views, and says nothing of its machine. The memory is of this process. After
a restart such a run is listed no more, and its lease counts on by the ledger (`agent/decide/reconcile/absence.py`).
"""

from collections.abc import Mapping

from agent.markets.dstack import endings, listing, rows
from agent.markets.dstack.states import Standing

OVER_LOOKS = 10
"""How many looks still list such a run once its machine is proven gone, so that the ledger surely takes the proof."""


class Deletions:
    """Watches from look to look which runs were deleted too early."""

    def __init__(self) -> None:
        """Begin without any look."""
        self._owed: dict[str, int] = {}
        """The looks that each run stays listed for once it is over and deleted."""
        self._kept: frozenset[str] = frozenset()

    def look(self, listed: listing.Listed, standing: Mapping[str, Standing]) -> None:
        """Note the runs of a listing, each with its standing."""
        owed: dict[str, int] = {}
        kept: set[str] = set()
        for run in listed.runs:
            where, left = standing[run.id], self._owed.get(run.id, 0)
            if not run.deleted and where.may_bill and listed.machines.get(run.name):
                owed[run.id] = OVER_LOOKS
            elif run.deleted and (left or is_there(run, listed)):
                kept.add(run.id)
                owed[run.id] = left - 1 if where.is_over else OVER_LOOKS
        self._owed, self._kept = owed, frozenset(kept)

    def is_kept(self, run: rows.Run) -> bool:
        """Return whether a run was deleted too early, by the last look."""
        return run.id in self._kept

    def forget(self, run: rows.Run) -> None:
        """Drop a run whose machine is proven gone, or of which a person says so."""
        self._owed.pop(run.id, None)
        self._kept -= {run.id}


def is_there(run: rows.Run, listed: listing.Listed) -> bool:
    """Return whether a machine of a run is there: a deleted run may still cost something."""
    return bool(machines_there(run, listed))


def machines_there(run: rows.Run, listed: listing.Listed) -> list[rows.Machine]:
    """Return the machines of a run that the server does not call terminated."""
    return [machine for machine in listed.machines.get(run.name, ()) if machine.status != endings.TERMINATED]
