"""The shipped file of card lists -> lists by market; the file is cards.toml beside this one."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from agent.baselines.baseline_document import Dated, Name, Table
from agent.config.value_kinds import Line
from agent.config.workload_tables.card_lists import CardList
from agent.domain.market import gpu

SHIPPED = Path(__file__).with_name("cards.toml")


class CardTable(Table):
    """The list of one market."""

    dated: Dated
    """Date of the list."""
    source: Annotated[Line, Field(min_length=1, max_length=120)]
    """Where the list comes from."""
    sold: tuple[Name, ...] = ()
    """Every model that it sells; empty: not known."""
    shown_as: dict[Name, Name] = Field(default_factory=dict)
    """Models that it shows by another name."""


def load() -> Mapping[str, CardList]:
    """Return the list of every market that has one, by the market's name."""
    tables = TypeAdapter(dict[str, CardTable]).validate_python(tomllib.loads(SHIPPED.read_text("utf-8")))
    return {name: _card_list(table) for name, table in tables.items()}


def _card_list(table: CardTable) -> CardList:
    shown_as = {gpu.model(ours): gpu.model(theirs) for ours, theirs in table.shown_as.items()}
    return CardList(table.dated, frozenset(map(gpu.model, table.sold)), shown_as)
