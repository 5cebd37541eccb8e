"""Whatever lies in the file, reading it ends in a configuration or in the one error for it."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent import config, strategy_files
from tests.support.configs import GOOD, STRATEGIES

LINES = st.sampled_from(
    [*GOOD.splitlines(), "[[workloads]]", "[workloads]", "gpu = [1e999]", "a.b.c = {}", "env = {A = 1}"]
)
VALUES = st.sampled_from(
    [
        "-1",
        "0",
        "1e400",
        "nan",
        "''",
        "'x'",
        "[]",
        "{}",
        "true",
        "1979-05-27",
        "[[[]]]",
        "{a={b=1}}",
        '"\\u0000"',
        "0x7f",
    ]
)


@st.composite
def nearly(draw: st.DrawFn) -> bytes:
    """Return the good configuration with lines dropped, doubled, swapped and given other values."""
    chosen = draw(st.lists(LINES, max_size=20)) if draw(st.booleans()) else GOOD.splitlines()
    place = draw(st.integers(0, max(0, len(chosen) - 1)))
    if chosen and "=" in chosen[place]:
        chosen = [*chosen]
        chosen[place] = f"{chosen[place].split('=')[0]}= {draw(VALUES)}"
    return "\n".join(chosen).encode()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bytes")


def attempt(read: Callable[[], object]) -> tuple[config.Problem, ...]:
    """Return the problems of a reading; any other error than the one for it fails the test."""
    with contextlib.suppress(config.ConfigError):
        read()
        return ()
    with pytest.raises(config.ConfigError) as caught:
        read()
    assert caught.value.problems
    return caught.value.problems


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode), nearly()))
@example(b"a=" + b"[" * 100_000)
@example(b"[" * 100_000)
@example(b"a." * 400_000)
@example(b"x=0x" + b"f" * 10_000)
@example(b"workloads=1")
@example(b"workloads={a={gpu=[1979-05-27]}}")
@example(b"strategies.directory='\\u0000'")
@example(b'strategies.directory="\\u0000"')
def test_any_bytes(place: Path, content: bytes) -> None:
    path = place / "agent.toml"
    path.write_bytes(content)
    found = attempt(lambda: config.load(path, strategies=STRATEGIES, climates=("calm",), environment={}))
    for problem in found:
        assert problem.file == str(path)
        assert 1 <= problem.line <= content.count(b"\n") + 1
        assert str(problem).isprintable()
        assert ";" in problem.sentence
        assert len(problem.sentence) < 600


@st.composite
def numbers(draw: st.DrawFn) -> bytes:
    """Return a strategy file whose keys have values of every kind."""
    keys = draw(st.lists(st.sampled_from(["headroom", "lower_after", "may_raise", "ceiling", "x"]), max_size=3))
    return ("strategy = 'patient'\n" + "".join(f"{key} = {draw(VALUES)}\n" for key in keys)).encode()


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=100), numbers()))
@example(b"strategy = 'patient'\nlower_after = '9999999999999999999999999m'")
@example(b"strategy = 'patient'\nheadroom = 0x" + b"f" * 5000)
def test_any_bytes_in_a_strategy_file(place: Path, content: bytes) -> None:
    folder = place / "strategies"
    folder.mkdir(exist_ok=True)
    (folder / "night.toml").write_bytes(content)
    assert all(str(problem).isprintable() for problem in attempt(lambda: strategy_files.load(folder)))
