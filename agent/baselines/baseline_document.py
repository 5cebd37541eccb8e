"""The tables and keys of a file of baselines."""

import re
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from agent.config.value_kinds import Dollars, Line, Whole, refused

Name = Annotated[Line, Field(min_length=1, max_length=64)]
_DATED = re.compile(r"[0-9]{4}(-(0[1-9]|1[0-2])(-[0-9]{2})?)?", re.ASCII)


def _dated(value: str) -> str:
    if not _DATED.fullmatch(value):
        raise refused("bad_date", 'must be a year, a month or a day; write for example dated = "2025-04"')
    return value


Dated = Annotated[Line, AfterValidator(_dated), Field(examples=["2025-04"])]


class Table(BaseModel):
    """A table of the file: every key known."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class FigureTable(Table):
    """One published price."""

    cloud: Annotated[Name, Field(pattern=r"^[a-z0-9_]+$", examples=["aws"])]
    """The cloud that sells it."""
    tier: Annotated[Line, Field(max_length=64)] = ""
    """The class of the offer, if the cloud has several."""
    gpu: Annotated[Name, Field(examples=["RTX 4090"])]
    """The model, or its family if the source says no more."""
    published_as: Annotated[Name, Field(examples=["A100 80GB SXM"])]
    """The source's own name of it."""
    tenure: Literal["on_demand", "interruptible", "reserved"] = "on_demand"
    """The tenure. A reserved price is paid for a whole term, so it is no on-demand price."""
    term_days: Annotated[Whole, Field(ge=1, le=3_660, examples=[365])] | None = None
    """Days that a reservation is paid for at least. By default, they are not known."""
    gpus: Annotated[Whole, Field(ge=1, le=1024)] = 1
    """Number of GPUs that the price is for."""
    sold_in: Annotated[Whole, Field(ge=1, le=1024)] = 1
    """Number of GPUs in the smallest sale."""
    per_hour: Annotated[Dollars, Field(gt=0, le=10_000, examples=[12.3])]
    """Dollars per hour, the least of a range."""
    per_hour_most: Annotated[Dollars, Field(gt=0, le=10_000)] | None = None
    """The highest price of a range."""
    dated: Dated
    """Date of the price."""
    source: Annotated[Name, Field(examples=["comparison"])]
    """The entry of [sources] that published it."""
    note: Annotated[Line, Field(max_length=120)] = ""
    """A note that a reader must know."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.most < self.per_hour:
            raise refused("out_of_range", "per_hour_most is less than per_hour; write the least first")
        return self

    @model_validator(mode="after")
    def _has_a_term(self) -> Self:
        if self.term_days is not None and self.tenure != "reserved":
            raise refused("conflict", 'term_days is for tenure = "reserved"; remove one, or write the other')
        return self

    @property
    def most(self) -> Decimal:
        """The upper end; the price itself if no range was published."""
        return self.per_hour if self.per_hour_most is None else self.per_hour_most


class SourceTable(Table):
    """A publisher of figures."""

    title: Annotated[Line, Field(min_length=10, max_length=200, examples=["published comparison, April 2025"])]
    """A note beside every price of it."""


class ModelTable(Table):
    """A model with several names."""

    family: Annotated[Line, Field(max_length=64)] = ""
    """The common name of all its forms."""
    also: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    """Its other spellings."""


class Document(Table):
    """The whole file."""

    figures: Annotated[tuple[FigureTable, ...], Field(max_length=10_000)]
    """Published prices."""
    sources: dict[str, SourceTable]
    """Who published them."""
    models: dict[str, ModelTable] = {}
    """Models under several names."""
