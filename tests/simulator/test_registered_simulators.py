import importlib.metadata

import pytest

from agent.simulator import registered_simulators


@pytest.mark.parametrize("value", ["agent.simulator.call_gate:Gate", "nowhere.to_be:FOUND"])
def test_a_package_replaces_no_market_and_must_bring_a_record(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    entry = importlib.metadata.EntryPoint("vast", value, registered_simulators.GROUP)
    monkeypatch.setattr(registered_simulators, "_entries", lambda: (entry,))
    assert registered_simulators.others(["vast"]) == {}
    with pytest.raises(ImportError):
        registered_simulators.others([])
