import importlib.metadata

import pytest

from agent.simulator import climate_files, registered_simulators
from agent.simulator.registered_simulators import GROUP


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_entries", "_record"):
        monkeypatch.setattr(registered_simulators, name, getattr(registered_simulators, name).__wrapped__)


@pytest.mark.parametrize("value", ["agent.clock:SystemClock", "nowhere.to_be:FOUND"])
def test_a_package_replaces_no_market_and_must_bring_a_record(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    ours = registered_simulators.installed()
    foreign = [importlib.metadata.EntryPoint(name, value, GROUP) for name in ("vast", "toybox")]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: foreign[:1] if group == GROUP else ())
    assert registered_simulators.installed() == ours
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: foreign if group == GROUP else ())
    with pytest.raises(ImportError):
        registered_simulators.installed()
    assert registered_simulators.usable() == ours, "help and the names of climates do without a broken package"
    assert "calm" in climate_files.names()


def test_the_first_market_is_one_of_ours_alone() -> None:
    records = registered_simulators.installed().values()
    assert [record.name for record in records if record.is_first] == [next(iter(records)).name]
