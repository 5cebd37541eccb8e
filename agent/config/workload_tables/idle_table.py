"""The table with the rule for idle GPUs."""

import re
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from agent.config.toml_table import Table
from agent.config.value_kinds import Line, Span, refused
from agent.domain.work.idle_rule import IdleRule, OnIdle
from agent.domain.work.workload import CheckpointPlace

_PERCENT = re.compile(r"\d{1,3}(\.\d{1,3})?%")
_MOST = 100.0


def _percent(value: str) -> str:
    if _PERCENT.fullmatch(value) is None or not 0.0 < _share(value) <= _MOST:
        raise refused("bad_percent", 'must be a share above 0 and up to 100 per cent; write for example below = "5%"')
    return value


def _share(text: str) -> float:
    return float(text.removesuffix("%"))


class IdleTable(Table):
    """The rule for GPUs that the market, or the guard in the container, shows as idle."""

    below: Annotated[Line, AfterValidator(_percent), Field(examples=["5%"])] = "5%"
    """The GPUs count as idle below this use."""
    lasts: Annotated[Span, Field(alias="for", ge=timedelta(minutes=5), examples=["30m"])] = timedelta(minutes=15)
    """They are idle after this long without any use above that."""
    then: Literal["warn", "pause", "release"] = "warn"
    """Alert, or also hold the slot for a person: with its lease paused, or released."""

    def rule(self) -> IdleRule:
        """Return it as the domain's value."""
        return IdleRule(_share(self.below), self.lasts, OnIdle(self.then))


def refuse_misfit(table: IdleTable, place: str, *, may_lose_disk: bool) -> None:
    """Refuse to release a disk that may hold the only copy of a checkpoint (rule 11)."""
    if table.then == "release" and CheckpointPlace(place) is CheckpointPlace.DISK and not may_lose_disk:
        sentence = "the disk may hold the only copy of work, so idle GPUs must not release it"
        raise refused("conflict", f'{sentence}; write then = "pause", or may_lose_disk = true')
