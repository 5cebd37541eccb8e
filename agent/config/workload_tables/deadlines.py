"""The table with a workload's deadline and with the way in which the workload reports its progress."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from agent.config import time_words
from agent.config.value_kinds import URL_PATH, Line, Number, Span, Whole, refused
from agent.domain.market import gpu
from agent.domain.work import deadline


def _by(value: object) -> datetime:
    return time_words.of_key(value, 'by = "2027-01-31T18:00Z"')


def _model(value: str) -> str:
    if not gpu.model(value):
        raise refused("empty", 'names no GPU model; write for example reference_gpu = "RTX 4090"')
    return value


class DeadlineTable(BaseModel):
    """Work with a deadline."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    hours: Annotated[Number, Field(gt=0, le=deadline.MOST_HOURS, examples=[48])]
    """Hours of work, on the reference GPU."""
    by: Annotated[datetime, BeforeValidator(_by), WithJsonSchema({"type": "string", "format": "date-time"})]
    """The time at which it must be done, in the years 2000 to 2100."""
    reference_gpu: Annotated[Line, Field(min_length=1, max_length=64), AfterValidator(_model)] | None = None
    """GPU model on which the hours are counted; it need not be one of `gpu`. Without this key: the model that runs."""
    restart: Annotated[Span, Field(examples=["20m"])] | None = None
    """The most time that an interruption costs. Without this key: a checkpoint interval and a restore."""
    progress: Literal["order", "log", "http", "guard"] = "order"
    """How the hours done are reported: by `gpubid progress`, in a line of the log, on a page, or by the guard."""
    progress_line: Annotated[Line, Field(min_length=1, max_length=256, examples=["hours done: {hours}"])] | None = None
    """Text of the line, with {hours} in place of the number, for progress = "log"."""
    progress_port: Annotated[Whole, Field(ge=1, le=65_535, examples=[8000])] | None = None
    """Port of the container, for progress = "http"; `ports` must contain it."""
    progress_path: Annotated[Line, Field(pattern=URL_PATH, max_length=256)] = "/progress"
    """Path of a page with the number, alone or as {"hours": 1.5}."""
    progress_total: Annotated[Number, Field(gt=0, le=1e15, examples=[20_000])] | None = None
    """The number that the work writes for its guard when all is done, for progress = "guard". By default `hours`."""

    @model_validator(mode="after")
    def _has_its_line(self) -> Self:
        line = self.progress_line
        if self.progress == "log" and line is None:
            sentence = 'progress = "log" needs the line; write for example progress_line = "hours done: {hours}"'
            raise refused("missing_key", sentence)
        if line is not None and (line.count(deadline.PLACE) != 1 or not line.partition(deadline.PLACE)[0].strip()):
            sentence = 'must hold text and then {hours} once; write for example progress_line = "hours done: {hours}"'
            raise refused("bad_line", sentence)
        if self.progress_total is not None and self.progress != "guard":
            raise refused(
                "conflict", 'progress_total is for progress = "guard"; remove it, or write progress = "guard"'
            )
        if self.progress == "http" and self.progress_port is None:
            sentence = 'progress = "http" needs the port; write for example progress_port = 8000'
            raise refused("missing_key", sentence)
        return self

    def deadline(self) -> deadline.Deadline:
        """Return the table's deadline."""
        return deadline.Deadline(
            hours=self.hours,
            by=self.by,
            reference_gpu=None if self.reference_gpu is None else gpu.model(self.reference_gpu),
            restart=self.restart,
            sign=deadline.ProgressSign(self.progress),
            line=self.progress_line or "",
            port=self.progress_port or 0,
            path=self.progress_path,
            total=self.progress_total or 0.0,
        )


def refuse_misfit(
    table: DeadlineTable | None, kind: str, slots: int, ports: tuple[int, ...], *, has_bucket: bool
) -> None:
    """Refuse a deadline that its workload cannot have.

    Raises:
        PydanticCustomError: its message says what to change.
    """
    if table is None:
        return
    if kind != "batch":
        raise refused("conflict", 'a deadline is for work that ends; write kind = "batch", or remove the table')
    if slots > 1:
        raise refused(
            "conflict", "a deadline counts the work of one slot; write slots = 1, with one workload for each part"
        )
    if table.progress == "guard" and not has_bucket:
        raise refused("missing_key", 'progress = "guard" needs a guard with a bucket; write a guard table, or "log"')
    port = table.progress_port
    if port is not None and port not in ports:
        raise refused("bad_port", f"progress_port {port} is not open; write ports = [{port}]")
