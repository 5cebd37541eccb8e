"""Markets are registered by records: ours by their folders, others by packages of one entry-point group."""

import importlib.metadata
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.config import document
from agent.config.problems import ConfigError
from agent.markets import registered_markets
from agent.markets.market_record import MarketRecord
from agent.markets.vast import vendor_record as vast

ROOT = Path(__file__).parents[2]


@pytest.fixture
def _anew() -> Iterator[None]:
    """Forget what is installed, before and after."""
    for known in (registered_markets._entries, registered_markets.record, document.installed):
        known.cache_clear()
    yield
    for known in (registered_markets._entries, registered_markets.record, document.installed):
        known.cache_clear()


def _install(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    entries = [importlib.metadata.EntryPoint(name, value, registered_markets.GROUP) for name, value in values.items()]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: entries)


def test_each_folder_with_a_record_is_registered_in_the_group() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folders = {name: f"agent.markets.{name}.vendor_record:RECORD" for name in registered_markets.shipped()}
    assert project["entry-points"][registered_markets.GROUP] == folders


@pytest.mark.parametrize("record", registered_markets.installed().values(), ids=lambda record: record.name)
def test_a_record_fits_together(record: MarketRecord) -> None:
    is_own_server = record.url.startswith("http://127.0.0.1:")
    assert is_own_server or record.url.startswith("https://")
    assert record.documentation.startswith("https://")
    own = set() if record.options is None else set(record.options.model_fields)
    assert own >= {question.key for question in record.questions} | set(record.needed_live) | set(record.needed_to_list)


@pytest.mark.usefixtures("_anew")
def test_no_package_replaces_a_market_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, vast="tests.examples.toybox.adapter:RECORD")
    assert registered_markets.record("vast") is vast.RECORD


@pytest.mark.usefixtures("_anew")
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("nowhere.to_be:FOUND", "moon: cannot be imported .ModuleNotFoundError."),
        ("pathlib:Path", "moon: is no record of a market named 'moon'"),
        ("tests.examples.toybox.adapter:RECORD", "moon: is no record of a market named 'moon'"),
    ],
)
def test_a_broken_package_stops_no_market_of_ours_but_is_a_mistake_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch, value: str, says: str
) -> None:
    _install(monkeypatch, moon=value)
    assert registered_markets.names() == tuple(sorted({"moon", *registered_markets.shipped()}))
    assert registered_markets.record("vast") is vast.RECORD
    with pytest.raises(registered_markets.BrokenMarket, match=says):
        registered_markets.record("moon")
    with pytest.raises(ConfigError) as broken:
        document.installed()
    assert broken.value.problems[0].code == "broken_market"


@pytest.mark.usefixtures("_anew")
def test_metadata_of_another_commit_names_no_market_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, gone="agent.markets.gone.record:RECORD")
    assert registered_markets.names() == registered_markets.shipped()
