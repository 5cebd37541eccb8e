"""The table with the most time that a workload or a lease may run."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from agent.config.toml_table import Table
from agent.config.value_kinds import Span, refused
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import CheckpointPlace


class MaxRunningTable(Table):
    """The most time that a workload or a lease runs, and what happens then."""

    most: Annotated[Span, Field(alias="for", ge=timedelta(minutes=1), examples=["12h"])]
    """Running time, counted from when a lease first is ready. Time in which it is paused or lost does not count."""
    of: Literal["workload", "lease"] = "workload"
    """What is counted: all leases of all slots together, also ended ones, or each lease by itself."""
    then: Literal["pause", "release", "done", "move"] = "pause"
    """Pause its leases, release them, mark the work as done, or move a lease to another host."""
    tell_before: Annotated[Span, Field(le=timedelta(days=7), examples=["15m"])] = timedelta(minutes=15)
    """How long before the end `alert.max_running` is raised."""

    @model_validator(mode="after")
    def _can_move(self) -> Self:
        if self.then == "move" and self.of == "workload":
            raise refused("conflict", 'a whole workload cannot move; write of = "lease", or then = "pause"')
        return self

    def limit(self) -> RunningLimit:
        """Return it as the domain's value."""
        return RunningLimit(self.most, LimitOf(self.of), AtLimit(self.then), self.tell_before)


def _listed(value: object) -> object:
    if isinstance(value, str | dict):
        value = [value]
    if not isinstance(value, list):
        raise refused("wrong_type", 'must be a duration in quotes or a table; write for example max_running = "12h"')
    return [{"for": each} if isinstance(each, str) else each for each in value]


def _any_form(schema: dict[str, Any]) -> None:
    """Let the JSON schema accept a duration or one table in place of a list of tables."""
    time = {"type": "string", "pattern": r"^(\d+d)?(\d+h)?(\d+m)?(\d+s)?$", "minLength": 2}
    one = [time, schema.pop("items")]
    schema["anyOf"] = [*one, {"type": schema.pop("type"), "items": {"anyOf": one}}]


MaxRunning = Annotated[
    tuple[MaxRunningTable, ...],
    BeforeValidator(_listed),
    Field(examples=["12h"], json_schema_extra=_any_form),
]
"""A duration, a table, or two tables: one of the workload and one of each lease."""


def refuse_misfit(tables: Iterable[MaxRunningTable], place: str, *, may_lose_disk: bool) -> None:
    """Refuse two limits of one kind, and one that releases a disk that may hold the only copy of work (rule 11)."""
    known = [table.of for table in tables]
    if len(set(known)) < len(known):
        raise refused("duplicate", f'max_running counts the {known[0]} twice; write of = "lease" in one of the two')
    for table in tables:
        gives_up = table.limit().gives_up_disks
        if gives_up and CheckpointPlace(place) is CheckpointPlace.DISK and not may_lose_disk:
            sentence = f'the disk may hold the only copy of work, so max_running with then = "{table.then}" may lose it'
            raise refused("conflict", f'{sentence}; write then = "pause", or may_lose_disk = true')
