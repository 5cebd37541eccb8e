"""The table of a workload's demand, and its slots as a range."""

from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from agent.config import problems
from agent.config.toml_table import Table
from agent.config.value_kinds import Line, Span, Whole, page_address, refused
from agent.domain.slot_demand import Demand, DemandFrom

MOST_SLOTS = 1_000
PAGE = "http://127.0.0.1:8080/backlog"


class SlotRange(Table):
    """The least and the most slots of a workload with demand."""

    least: Annotated[Whole, Field(ge=0, le=MOST_SLOTS, examples=[0])] = 0
    """The least slots: they run without any task too, and before the first answer."""
    most: Annotated[Whole, Field(ge=0, le=MOST_SLOTS, examples=[12])]
    """The most slots, whatever number is answered."""

    @model_validator(mode="after")
    def _is_range(self) -> Self:
        if self.least > self.most:
            raise refused("out_of_range", f"least is above most; write for example most = {self.least}")
        return self


def _range(value: object) -> object:
    if isinstance(value, dict | SlotRange):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise refused("wrong_type", "must be a whole number, or a range for a demand; write for example slots = 1")
    if value < 0:
        raise refused("out_of_range", f"must be at least 0, not {value}")
    if value > MOST_SLOTS:
        raise refused("out_of_range", f"must be at most {MOST_SLOTS}, not {problems.shown(value)}")
    return {"least": value, "most": value}


def _number_too(schema: dict[str, Any]) -> None:
    """Let the JSON schema accept a number in place of a range."""
    range_of = {key: schema.pop(key) for key in ("$ref", "allOf") if key in schema}
    schema["anyOf"] = [{"type": "integer", "minimum": 0, "maximum": MOST_SLOTS}, range_of]
    schema["default"] = 1


Slots = Annotated[SlotRange, BeforeValidator(_range), Field(examples=[3], json_schema_extra=_number_too)]
"""A number of slots, or the range within which a demand chooses it."""


def refuse_misfit(slots: SlotRange, kind: str, *, has_demand: bool, is_shrink_set: bool, has_deadline: bool) -> None:
    """Refuse a range without a demand and a demand without one, also for work that counts its slots itself."""
    if has_demand and slots.least == slots.most:
        sentence = f"a demand chooses within a range; write slots = {{ least = 0, most = {max(slots.most, 1)} }}"
        raise refused("missing_key", sentence)
    if not has_demand and slots.least != slots.most:
        raise refused(
            "missing_key", f"a range of slots is for a demand; write demand = {{ http = … }}, or slots = {slots.most}"
        )
    if has_demand and (kind != "service" or has_deadline):
        raise refused("conflict", 'a demand is for kind = "service": a batch or a deadline wants all of its slots')
    if is_shrink_set and not has_demand:
        raise refused("conflict", "shrink_after is for a demand; remove it")


class DemandTable(Table):
    """The source of a queue's present demand for slots, which is asked again and again."""

    http: Annotated[Line, Field(max_length=512, examples=[PAGE]), AfterValidator(page_address)] | None = None
    """A page that answers the number of tasks, waiting and running, or JSON with `tasks`."""
    command: (
        Annotated[
            tuple[Annotated[Line, Field(min_length=1, max_length=4096)], ...],
            Field(min_length=1, max_length=64, examples=[["redis-cli", "LLEN", "celery"]]),
        ]
        | None
    ) = None
    """A program and its arguments, run without a shell, that prints the number. It gets none of gpubid's keys."""
    prometheus: (
        Annotated[Line, Field(max_length=512, examples=["http://127.0.0.1:9090"]), AfterValidator(page_address)] | None
    ) = None
    """Address of Prometheus, with `query`."""
    query: Annotated[Line, Field(min_length=1, max_length=4096, examples=["sum(queue_tasks)"])] | None = None
    """A query of Prometheus that gives one sample."""
    per_slot: Annotated[Whole, Field(ge=1, le=1_000_000)] = 1
    """The number of tasks that one slot works on."""
    every: Annotated[Span, Field(ge=timedelta(seconds=5), le=timedelta(hours=1), examples=["30s"])] = timedelta(
        seconds=30
    )
    """How often it is asked."""

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        named = [key for key in ("http", "command", "prometheus") if getattr(self, key) is not None]
        if len(named) != 1:
            sentence = "a demand is read from one place; write http, command, or prometheus with query"
            raise refused("no_source", f'{sentence}, for example http = "{PAGE}"')
        if (self.query is None) == (self.prometheus is not None):
            raise refused("missing_key", "prometheus and query go together")
        return self

    def demand(self, least: int, shrink_after: timedelta) -> Demand:
        """Return it as the domain's value."""
        place = self.http or self.prometheus or ""
        source = DemandFrom.HTTP if self.http else DemandFrom.PROMETHEUS if self.prometheus else DemandFrom.COMMAND
        return Demand(
            least=least,
            source=source,
            place=place,
            query=self.query or "",
            command=self.command or (),
            per_slot=self.per_slot,
            every=self.every,
            shrink_after=shrink_after,
        )
