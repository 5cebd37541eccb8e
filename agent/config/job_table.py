"""A job to estimate: the keys of its file and the options of `gpubid estimate`. Options outrank the file."""

import pathlib
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

import pydantic
from pydantic import AfterValidator, Field, model_validator

from agent.config import problems, pydantic_problems
from agent.config.files import source
from agent.config.files.lines import Lines
from agent.config.toml_table import Table
from agent.config.value_kinds import ONE_WORD, Dollars, Line, Number, ShareOfOnDemand, Span, Whole, refused

COMMAND_LINE = "command line"
_MOST_HOURS = 1_000_000


def _range(value: tuple[float, ...]) -> tuple[float, ...]:
    if not 1 <= len(value) <= 2 or not 1 <= value[0] <= value[-1] <= 1000:  # noqa: PLR2004 - one factor, or two
        raise refused("out_of_range", "must be one factor of at least 1, or the lowest and the highest factor")
    return value


class JobCheckpointTable(Table):
    """How the job makes checkpoints."""

    interval: Annotated[Span, Field(examples=["15m"])] | None = None
    """Time between two checkpoints. By default, the best interval if `takes` is known."""
    takes: Annotated[Span, Field(examples=["30s"])] | None = None
    """How long the job stops to write a checkpoint."""
    restore_seconds: Annotated[Number, Field(ge=0, le=86_400)] = 60.0
    """Seconds from the start of the container to useful work."""
    size_gb: Annotated[Number, Field(ge=0, le=100_000)] = 0.0
    """Gigabytes of a checkpoint, fetched on a new host."""
    at: Literal["disk", "remote", "none"] = "remote"
    """Where checkpoints are kept."""


class JobTable(Table):
    """A job to estimate."""

    hours: Annotated[Number, Field(gt=0, le=_MOST_HOURS, examples=[24.0])]
    """Hours of useful work on these GPUs."""
    unit: Annotated[Line, Field(pattern=ONE_WORD, max_length=32, examples=["step"])] | None = None
    """Unit of the work, for dollars per unit."""
    units: Annotated[Number, Field(ge=0.001, le=1e15, examples=[20_000])] | None = None
    """Number of units in the hours of work."""
    gpu: Annotated[tuple[Annotated[Line, Field(min_length=1, max_length=64)], ...], Field(max_length=16)] = Field(
        min_length=1, examples=[["RTX 4090"]]
    )
    """GPU models to estimate, one by one, in any spelling."""
    gpus: Annotated[Whole, Field(ge=1, le=1024)] = 1
    """Number of GPUs at a time."""
    image_gb: Annotated[Number, Field(ge=0, le=10_000)] = 5.0
    """Gigabytes of the image as pulled."""
    disk_gb: Annotated[Number, Field(ge=0, le=100_000)] = 20.0
    """Gigabytes of disk."""
    dataset_gb: Annotated[Number, Field(ge=0, le=1_000_000)] = 0.0
    """Gigabytes of data that every new host fetches."""
    deadline: Annotated[Span, Field(examples=["2d"])] | None = None
    """Time that is allowed from the start."""
    reruns: Annotated[tuple[Number, ...], AfterValidator(_range), Field(examples=[[2, 3]])] = (1.0,)
    """Cost of all runs as a multiple of one run's: a factor, or the least and the most."""
    odds: Annotated[Number, Field(ge=0.0025, le=1, examples=[0.5])] | None = None
    """Chance that a run succeeds; `reruns` then follows from it."""
    price: Annotated[Dollars, Field(gt=0, le=1000)] | None = None
    """On-demand dollars per GPU and hour, instead of the ledger's."""
    floor: Annotated[Dollars, Field(gt=0, le=1000)] | None = None
    """Dollars per GPU and hour of the lowest bid that runs, instead of the ledger's."""
    hazard: Annotated[Number, Field(ge=0, le=100)] | None = None
    """Interruptions by the market per running hour of a bid at the floor, instead of our own record's."""
    storage_price: Annotated[Dollars, Field(ge=0, le=100)] | None = None
    """Dollars per gigabyte and month of disk."""
    network_volume_per_month: Annotated[Dollars, Field(ge=0, le=100_000)] = Decimal()
    """Dollars that the job's network volume costs in a month of 720 hours."""
    traffic_price: Annotated[Dollars, Field(ge=0, le=100)] | None = None
    """Dollars per gigabyte fetched."""
    reliability: Annotated[Number, Field(gt=0, lt=1)] = 0.95
    """Least advertised reliability of the hosts."""
    inet_down: Annotated[Number, Field(gt=0, le=1_000_000)] = 100.0
    """Least download speed of the hosts in Mb/s."""
    down: Annotated[Span, Field(examples=["10m"])] | None = None
    """Time from an interruption until the job runs again."""
    max_price: Annotated[Dollars, Field(gt=0, le=1000)] | None = None
    """The most that all its GPUs may cost per hour."""
    max_price_by_gpu: Annotated[
        dict[Annotated[str, Field(min_length=1, max_length=64)], Annotated[Dollars, Field(gt=0, le=1000)]],
        Field(max_length=16),
    ] = {}  # noqa: RUF012 - pydantic copies it
    """The same for single GPU models."""
    value_per_hour: Annotated[Dollars, Field(gt=0, le=1000)] | None = None
    """What an hour of the job is worth, which is the bid where the price paid is not the bid; else `max_price`."""
    value: ShareOfOnDemand | None = None
    """The same as a share of the on-demand price, such as "0.8 x on_demand"."""
    checkpoint: JobCheckpointTable = JobCheckpointTable()
    """How it keeps checkpoints."""

    @model_validator(mode="after")
    def _says_once(self) -> Self:
        if self.odds is not None and "reruns" in self.model_fields_set:
            raise refused("conflict", "odds does not go with reruns; remove one or the other")
        if self.value is not None and self.value_per_hour is not None:
            raise refused("conflict", "value and value_per_hour are both set; keep one: the share, or the dollars")
        return self


def read(file: pathlib.Path | None, workload: Mapping[str, Any], given: Mapping[str, Any]) -> JobTable:
    """Return a job: options of the command line outrank the file, and the file outranks the workload.

    Raises:
        ConfigError: with every mistake, by file and line, or by option.
    """
    place = source.Source(COMMAND_LINE, {}, Lines(), "") if file is None else source.read(file, parse_float=Decimal)
    said = _over(place.values, given)
    try:
        return JobTable.model_validate(_over(_without_other_units(workload, said), said))
    except pydantic.ValidationError as error:
        raise problems.ConfigError(pydantic_problems.problems_of(error, place, JobTable)) from None


def _without_other_units(workload: Mapping[str, Any], said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a workload's keys; if other hours or another unit are given, without its number of units in its own."""
    is_same = not {"hours", "unit"} & said.keys()
    return workload if is_same else {key: value for key, value in workload.items() if key != "units"}


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**below, **above}
    inner = [part.get("checkpoint") for part in (below, above)]
    if all(isinstance(one, dict) for one in inner):
        merged["checkpoint"] = {key: value for one in inner if isinstance(one, dict) for key, value in one.items()}
    return merged


def hours(span: timedelta | None) -> float | None:
    """Return a duration in hours."""
    return None if span is None else span / timedelta(hours=1)
