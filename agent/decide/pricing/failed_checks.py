"""Hosts that failed the check of a guard, for whatever hard reason: by their kept checks, before a rent.

Invariants:
1. A check without a figure proves nothing about it. A check may be forged by anybody with the bucket's key: by the host
   itself, or by another host of the workload in the first minutes of the lease.
2. For each promise the last check with a figure for it decides, so a repaired host counts as good after the next check.
3. After `FORGOTTEN_AFTER` a host is tried again: it has to fail anew.
4. A failed check of the operator's own script counts only for the text of that script: a correction ends it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from agent.domain.fleet import Fleet
from agent.domain.market import gpu_identity
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey
from agent.domain.market.offer import Offer
from agent.domain.record.host_check import HostCheck
from agent.domain.work.guard_terms import Accept
from agent.domain.work.workload import Workload

FORGOTTEN_AFTER = timedelta(days=30)
"""Cards are rarely changed, and a false promise costs a failed start, so a host costs one a month. Assumed."""

FailedChecks = Mapping[tuple[HostKey, GpuModel], str]
"""How each host with a model breaks its promise, as a sentence; a host that keeps it is missing."""


def of(fleet: Fleet, work: Workload, offers: Iterable[Offer]) -> FailedChecks:
    """Return those hosts among the offers that break their promise to a workload that rejects for it."""
    if work.guard is None or work.guard.accept is not Accept.REJECT or not fleet.host_checks:
        return {}
    offered = {(offer.host, offer.gpu) for offer in offers if not offer.host.is_pool}
    by_host: dict[HostKey, list[HostCheck]] = {}
    for check in sorted(fleet.host_checks.values(), key=lambda each: each.checked_at):
        if fleet.now - check.checked_at < FORGOTTEN_AFTER:
            by_host.setdefault(check.host, []).append(check)
    found: dict[tuple[HostKey, GpuModel], str] = {}
    for host, model in offered:
        mine = by_host.get(host, ())
        of_gpus = _other_card(mine, model) or _fewer(mine, work.requirements.gpus)
        if why := of_gpus or _defect(mine, model, work.guard.script_digest):
            found[host, model] = why
    return found


def _other_card(checks: Iterable[HostCheck], model: GpuModel) -> str:
    """Return how a host's last check contradicts the model of its card, or nothing; checks are from old to new."""
    why = ""
    for check in checks:
        if check.gpu == model and check.seen_gpu:
            is_same = gpu_identity.may_be_same(model, check.seen_gpu)
            why = "" if is_same else _sentence(f"its GPU was {check.seen_gpu} and not {model}", check.checked_at)
    return why


def _fewer(checks: Iterable[HostCheck], gpus: int) -> str:
    """Return how a host's last check with a number of GPUs found fewer, or nothing; checks are from old to new."""
    why = ""
    for check in checks:
        seen = check.seen_gpus
        if seen is not None and seen >= gpus:
            why = ""
        elif seen is not None and seen < check.gpus:
            why = _sentence(f"{seen} of {check.gpus} GPUs were there", check.checked_at)
    return why


def _defect(checks: Iterable[HostCheck], model: GpuModel, script: str) -> str:
    """Return how a host's last check with a verdict found its card to fail, or an empty text.

    Checks are from old to new. The verdict of an operator's script counts only for the same script.
    """
    of_host = of_script = ""
    for check in checks:
        if check.gpu != model or check.defect is None:
            continue
        why = check.defect and _sentence(check.defect, check.checked_at)
        if check.script == script:
            of_script = why
        # A script runs on a host whose GPUs work.
        of_host = why if check.script is None else ""
    return of_host or of_script


def _sentence(lack: str, checked_at: datetime) -> str:
    until = checked_at + FORGOTTEN_AFTER
    return f"{lack} at the check of {checked_at:%Y-%m-%d}: not tried again before {until:%Y-%m-%d %H:%M} UTC"
