"""A file of baselines -> a catalogue; the shipped file is published.toml beside this one."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pydantic

from agent.baselines.baseline_document import Document, FigureTable
from agent.baselines.catalogue import Catalogue
from agent.config import problems, pydantic_problems
from agent.config.files import source
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.market.baseline import Baseline
from agent.domain.market.gpu import GpuModel
from agent.domain.market.tenure import Tenure

SHIPPED = Path(__file__).with_name("published.toml")


def load(path: Path = SHIPPED) -> Catalogue:
    """Return every figure of a file, the shipped one by default.

    Raises:
        ConfigError: with every mistake, each with file, line, key and what to write instead.
    """
    read = source.read(path, parse_float=Decimal)
    try:
        document = Document.model_validate(read.values)
    except pydantic.ValidationError as error:
        raise problems.ConfigError(pydantic_problems.problems_of(error, read, Document)) from None
    found = [
        read.problem(
            ("figures", number, "source"),
            "unknown_source",
            f"there is no source {problems.shown(figure.source)}; {problems.nearest(figure.source, document.sources)}",
        )
        for number, figure in enumerate(document.figures)
        if figure.source not in document.sources
    ]
    if found:
        raise problems.ConfigError(found)
    return _catalogue(document)


def _catalogue(document: Document) -> Catalogue:
    names: dict[GpuModel, frozenset[GpuModel]] = {}
    for spelling, model in _spellings(document):
        names[spelling] = names.get(spelling, frozenset()) | {model}
    families = {gpu.model(name): gpu.model(table.family) for name, table in document.models.items() if table.family}
    return Catalogue(tuple(_baseline(figure, document) for figure in document.figures), names, families)


def _spellings(document: Document) -> Iterator[tuple[GpuModel, GpuModel]]:
    for name, table in document.models.items():
        for spelling in (name, table.family, *table.also):
            if spelling:
                yield gpu.model(spelling), gpu.model(name)


def _baseline(figure: FigureTable, document: Document) -> Baseline:
    return Baseline(
        cloud=figure.cloud,
        tier=figure.tier,
        gpu=gpu.model(figure.gpu),
        published_as=figure.published_as,
        tenure=Tenure(figure.tenure),
        gpus=figure.gpus,
        sold_in=figure.sold_in,
        least=money.per_hour(figure.per_hour),
        most=money.per_hour(figure.most),
        dated=figure.dated,
        source=document.sources[figure.source].title,
        note=figure.note,
        term_days=figure.term_days,
    )
