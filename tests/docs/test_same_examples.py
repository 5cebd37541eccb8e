"""A property is tried on the same examples, whatever else is collected or imported."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ODD = tuple(1_000_003.0 + 17 * number for number in range(200))
"""Literals that no example has unless they are taken from a module's source."""


@pytest.mark.skipif("GPUBID_RANDOM" in os.environ, reason="goes looking for new examples")
def test_an_imported_module_changes_no_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _examples()
    source = tmp_path / "odd_literals.py"
    source.write_text(f"ODD = {ODD!r}\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("odd_literals", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "odd_literals", module)
    spec.loader.exec_module(module)
    assert _examples() == before


def test_the_profile_of_another_folder_is_not_in_force_here() -> None:
    assert settings.get_current_profile_name() == "plain"
    assert settings().max_examples == 100


def _examples() -> list[float]:
    drawn: list[float] = []

    @settings(max_examples=200)
    @given(st.floats(0, 2_000_000))
    def keep(number: float) -> None:
        drawn.append(number)

    keep()
    return drawn
