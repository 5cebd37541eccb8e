"""A run with its machines -> its state in our words.

A run that has ended is not yet an ended lease: its machine is billed until its cloud has taken it back. The run stays
in our listing until it is deleted, and it is deleted only when its machines are proven gone (`endings.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.domain.market.instance import InstanceState
from agent.markets import text
from agent.markets.dstack import rows
from agent.markets.dstack.endings import TERMINATED, Endings

FINISHED = frozenset({"terminated", "failed", "done"})
TERMINATING = "terminating"
_WAITING = frozenset({"pending", "submitted"})
_BEGINNING = frozenset({"submitted", "provisioning", "pulling"})
_LOST = frozenset({"interrupted_by_no_capacity", "instance_unreachable", "instance_access_revoked"})
_EXITED = frozenset({"done_by_runner", "container_exited_with_error", "max_duration_exceeded", "log_quota_exceeded"})
_NO_CAPACITY = "failed_to_start_due_to_no_capacity"
_NEVER_RAN = frozenset(
    {
        _NO_CAPACITY,
        "waiting_instance_limit_exceeded",
        "waiting_runner_limit_exceeded",
        "creating_container_error",
        "ports_binding_failed",
        "volume_error",
        "executor_error",
    }
)
_IMAGE = "creating_container_error"
_ONGOING = _BEGINNING | {"running"}
"""The statuses of a job that has not ended."""
_ACTIVE = frozenset({"provisioning", "running"})
UNPROVEN = (
    "dstack calls its machine terminated, and nobody watched the end of run {name}: look at the console of its cloud"
)
NO_CLIENT = (
    "dstack calls the machine of run {name} terminated, and may have had no access to its cloud then: look at the "
    "console of that cloud"
)
UNLISTED = (
    "dstack shows no machine of run {name}, and nobody watched the end of the one it had: look at the console of its "
    "cloud"
)


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a run; `may_bill` if it may bill in another state than running, `is_over` if it may be deleted."""

    state: InstanceState
    may_bill: bool = False
    is_wanted: bool = False
    is_over: bool = False
    message: str = ""
    stopped_from_outside: str = ""
    """Why the server says that it ended the run, unless that is a word for host, capacity or container."""
    is_image_refused: bool = False
    is_out_of_capacity: bool = False
    is_unproven: bool = False
    """Whether the server calls run and machine over, but we did not watch the machine's end."""


def is_active(run: rows.Run) -> bool:
    """Return whether a run goes on."""
    return run.status in _ACTIVE and not run.deleted


def standing(run: rows.Run, machines: Sequence[rows.Machine], endings: Endings) -> Standing:
    """Return the state of a run with the machines that were made for it."""
    job = run.latest_job_submission or rows.Submission()
    has_machine = job.job_provisioning_data is not None or any(machine.backend for machine in machines)
    if run.status in FINISHED and job.status in _ONGOING:
        # The server ends a run after its jobs, so one of both words is wrong.
        return Standing(InstanceState.UNKNOWN, may_bill=True, is_wanted=True)
    if run.status in FINISHED or run.status == TERMINATING:
        return _ended(run, job, machines, endings, has_machine=has_machine)
    if run.status in _WAITING:
        return Standing(InstanceState.PENDING, has_machine, is_wanted=True)
    if run.status == "provisioning" or (run.status == "running" and job.status in _BEGINNING):
        state = InstanceState.LOADING if has_machine else InstanceState.PENDING
        return Standing(state, has_machine, is_wanted=True)
    if run.status == "running" and job.status == "running":
        return Standing(InstanceState.RUNNING, may_bill=True, is_wanted=True)
    return Standing(InstanceState.UNKNOWN, may_bill=True, is_wanted=True)


def _ended(
    run: rows.Run, job: rows.Submission, machines: Sequence[rows.Machine], endings: Endings, *, has_machine: bool
) -> Standing:
    is_finished, why = run.status in FINISHED, job.termination_reason or ""
    said = text.clean(job.termination_reason_message or why.replace("_", " "))
    if not has_machine:
        state = InstanceState.FAILED if is_finished else InstanceState.PENDING
        is_out = is_finished and why == _NO_CAPACITY
        return Standing(state, is_over=is_finished, message=said, is_out_of_capacity=is_out)
    is_gone = is_finished and bool(machines) and all(endings.is_gone(machine) for machine in machines)
    # Also without any machine: it was deleted with its fleet, say, or nothing names its run any more.
    is_unproven = is_finished and all(_is_unproven(machine, endings) for machine in machines)
    is_known = why in _LOST | _EXITED | _NEVER_RAN
    return Standing(
        _state(why, is_over=is_gone or is_unproven),
        may_bill=not is_gone,
        is_over=is_gone,
        message=_why_unproven(machines, endings).format(name=run.name) if is_unproven else said,
        stopped_from_outside="" if is_known else f"run {run.name} has the reason {said or 'none'}",
        is_image_refused=why == _IMAGE,
        is_unproven=is_unproven,
    )


def _is_unproven(machine: rows.Machine, endings: Endings) -> bool:
    return machine.status == TERMINATED and not endings.is_nearly_proven(machine)


def _why_unproven(machines: Sequence[rows.Machine], endings: Endings) -> str:
    if any(endings.lacked_client(machine) for machine in machines):
        return NO_CLIENT
    return UNPROVEN if machines else UNLISTED


def _state(why: str, *, is_over: bool) -> InstanceState:
    """Return how a run ended. An end for another reason is no loss until the server calls its machine over too."""
    if why in _EXITED:
        return InstanceState.EXITED
    if why in _NEVER_RAN:
        return InstanceState.FAILED
    return InstanceState.OFFLINE if why in _LOST or is_over else InstanceState.UNKNOWN
