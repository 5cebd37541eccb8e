"""The keys of an array in a workload's table, and the terms that they become."""

from collections.abc import Mapping

from agent.config.value_kinds import refused
from agent.domain.work.array_terms import DEFAULT_AT_ONCE, ArrayTerms, TaskOrder
from agent.domain.work.workload import CheckpointPlace


def refuse_misfit(kind: str, given: dict[str, object]) -> None:
    """Refuse the keys of an array for a service; `given` are those that are set, by name."""
    if given and kind != "batch":
        key = next(iter(given))
        raise refused(
            "conflict", f'{key} is for a batch, whose slots end one by one; write kind = "batch", or remove it'
        )


def refuse_lost_disks(retries: int | None, place: str, *, may_lose_disk: bool) -> None:
    """Refuse to try again on another host if the disk may hold the only copy of a checkpoint (rule 11)."""
    if retries and CheckpointPlace(place) is CheckpointPlace.DISK and not may_lose_disk:
        sentence = "the disk may hold the only copy of work, so no task is tried again on another host"
        raise refused("conflict", f'{sentence}; write at = "remote" or "none" in checkpoint, or may_lose_disk = true')


def is_array(kind: str, slots: int, given: Mapping[str, object]) -> bool:
    """Return whether a workload is an array; `given` are the keys of arrays by name, None for those not set."""
    return kind == "batch" and (slots > DEFAULT_AT_ONCE or any(value is not None for value in given.values()))


def terms(
    kind: str,
    slots: int,
    at_once: int | str | None,
    order: str | None,
    retries: int | None,
    task_hours: float | None,
) -> ArrayTerms | None:
    """Return the terms of an array; None for a service, and for a batch of few slots that begin together.

    `at_once` is a number, "purse", or None if the file does not say.
    """
    given = {"at_once": at_once, "order": order, "retries": retries, "task_hours": task_hours}
    if not is_array(kind, slots, given):
        return None
    most = None if isinstance(at_once, str) else at_once or DEFAULT_AT_ONCE
    return ArrayTerms(most, TaskOrder(order or TaskOrder.INDEX.value), retries or 0, task_hours)
