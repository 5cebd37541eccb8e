"""Slots that wait for their bucket after a lost ledger: nobody knows whether an earlier run of their work is there."""

from collections.abc import Iterable
from datetime import datetime

from agent.decide.facts import Alert
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.event_kind import EventKind
from agent.domain.record.guard_run import GuardRun
from agent.domain.slot import Slot

GROUND = "a lost ledger and no list of its runs in the bucket: "
"""The first words of the ground of such a cooldown."""


def waits(known: Iterable[Cooldown], slot: Slot) -> bool:
    """Return whether one of the cooldowns in force makes a slot wait for its bucket."""
    return any(each.key == str(slot) and each.ground.startswith(GROUND) for each in known)


def cooldown(run: GuardRun, why: str, until: datetime) -> Cooldown:
    """Return the cooldown of a slot until its bucket is asked again."""
    return Cooldown(CooldownKind.SLOT, str(run.slot), until, sentence(run, why))


def sentence(run: GuardRun, why: str) -> str:
    """Return why a slot waits; `why` says what happened to the listing."""
    return (
        f"{GROUND}{why}. An earlier run may be there, and run {run.run} would be paid work from zero: see `gpubid "
        f"doctor`, then `gpubid resume {run.slot}` to try at once"
    )


def alert(slot: Slot, why: str) -> Alert:
    """Return the alert about a slot that waits, for a reason of `sentence`."""
    return Alert(EventKind.ALERT_BUCKET_UNLISTED, str(slot), f"nothing is rented for {slot}, after {why}")


def refused(workload: str, why: str) -> Alert:
    """Return the alert about a workload whose bucket refuses a request of ours, by `why`."""
    sentence = f"the guard of {workload} cannot save its work: {why}. It needs to list, read and write its folder"
    return Alert(EventKind.ALERT_BUCKET_REFUSED, workload, f"{sentence}; see `gpubid doctor`")
