"""A market that a workload names and that sells none of its cards draws a finding, by dated lists and seen offers."""

from collections.abc import Iterable

import pytest

from agent.baselines import card_lists_loading
from agent.config.workload_tables import card_lists
from agent.domain.market import card_memory, gpu
from agent.markets import registered_markets
from agent.markets.dstack import names as dstack_names
from agent.markets.mithril import names as mithril_names
from agent.simulator.dstack import assumed_figures as dstack_figures
from agent.simulator.mithril import models as mithril_models
from agent.simulator.runpod import models as runpod_models

SHIPPED = card_lists_loading.load()


def found(market: str, models: Iterable[str], seen: Iterable[tuple[str, str]] = ()) -> list[str]:
    reasons = card_lists.unsold(
        market,
        "fallback_markets",
        [gpu.model(model) for model in models],
        SHIPPED[market],
        {(name, gpu.model(model)) for name, model in seen},
    )
    return [f"{each.sentence}; {each.fix}" for each in reasons]


@pytest.mark.parametrize(
    ("market", "models", "words"),
    [
        (
            "mithril",
            ["RTX 4090", "L4"],
            'mithril sells none of "L4", "RTX 4090", by its list of 2026-10; name a card',
        ),
        ("runpod", ["T4"], 'runpod sells none of "T4", by its list of 2025-06-15; name a card'),
        (
            "dstack",
            ["A100 SXM4", "A100 PCIE"],
            'dstack shows these cards as "A100": nothing in gpu matches there; add "A100" to gpu, or remove dstack',
        ),
    ],
)
def test_a_market_that_sells_none_of_the_cards_is_found(market: str, models: list[str], words: str) -> None:
    (reason,) = found(market, models)
    assert reason.startswith(words)


@pytest.mark.parametrize(
    ("market", "models"),
    [
        ("mithril", ["RTX 4090", "H100 SXM"]),
        ("mithril", []),
        ("dstack", ["A100 SXM4", "A100"]),
        ("dstack", ["A100 SXM4", "RTX 4090"]),
        ("dstack", ["RTX 4090"]),
    ],
    ids=str,
)
def test_a_market_that_may_sell_one_of_them_is_not(market: str, models: list[str]) -> None:
    assert found(market, models) == []


def test_a_card_that_was_seen_there_is_sold_there() -> None:
    assert found("runpod", ["T4"], [("runpod", "T4")]) == []
    assert found("runpod", ["T4"], [("vast", "T4")]) != []


def test_the_lists_are_what_was_recorded() -> None:
    model = registered_markets.record("runpod").gpu_model
    assert SHIPPED["runpod"].sold == {model(each.name) for each in runpod_models.TYPES}
    kinds = {mithril_names.model(each.gpu_type, each.socket, each.name) for each in mithril_models.TYPES}
    assert SHIPPED["mithril"].sold == kinds
    # The last is in the list of dstack's own catalogue, gpuhunt 0.1.34; no simulated cloud has it.
    shown = {dstack_names.model(name) for name in (*dstack_figures.MEMORY_GB, "RTXPRO6000")}
    assert not shown & SHIPPED["dstack"].shown_as.keys()
    assert set(SHIPPED["dstack"].shown_as.values()) <= shown


def test_every_card_is_in_gpubids_spelling() -> None:
    for listed in SHIPPED.values():
        assert listed.sold | listed.shown_as.keys() <= card_memory.GIGABYTES.keys()
