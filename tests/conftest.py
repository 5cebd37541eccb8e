"""Properties are tried on the same examples in every run, whatever is selected, and none fails for a slow machine.

Two things made examples depend on the selection. Hypothesis draws literals of every module that happens to be imported;
and a profile that the conftest of one folder loads stays loaded for the tests of every other folder.
"""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.support import engines, loop
from tests.support.wiring import IS_WIRED

IS_SEARCH = "GPUBID_RANDOM" in os.environ
"""GPUBID_RANDOM=1 searches for new examples; a plain run must play the same story twice."""

PROFILES = {"rules": "rules"}
"""The profile of each folder's tests, registered by its conftest; "plain" where none is named."""

ON_ONE_THREAD = {"scenarios", "daemon", "act"}
"""Folders whose stories run the ledger's work on the event loop's own thread."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So a shell starts background programs, and every program that a test interrupts would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # Under nohup programs inherit that they ignore it, and tests would wait for their end. A handler is not inherited.
    signal.signal(signal.SIGHUP, lambda *_: None)

settings.register_profile(
    "plain",
    derandomize=not IS_SEARCH,
    deadline=None,
    suppress_health_check=(HealthCheck.too_slow,),
    print_blob=True,
)
settings.load_profile("plain")

if not IS_SEARCH:
    # No setting turns this off. Should the name go, tests/docs/test_same_examples.py fails.
    providers.is_local_module_file = lambda _path: False  # type: ignore[assignment, attr-defined]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector off while tests are collected, and away from them and their libraries afterwards.

    It walked through all of them each time that it looked at everything: a tenth of the processor time of tests/act.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Collect a module under its folder's profile: `@settings` takes unnamed settings from there."""
    _load_profile(collector.path)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test under its folder's profile."""
    _load_profile(item.path)
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Let every worker begin with its share of the long tests: all would wait for one that is left for the end.

    It wraps the shuffling of tests. xdist gives each worker one stretch of the list.
    """
    yield
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    long = sorted(filter(_seconds, items), key=_seconds, reverse=True)
    others = [item for item in items if not _seconds(item)]
    left, items[:] = len(items), []
    for worker in range(workers):
        mine = long[worker::workers]
        room = max(left // (workers - worker) - len(mine), 0)
        items += mine + others[:room]
        left -= len(mine) + len(others[:room])
        del others[:room]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play a test on each engine of the ledger that it is for."""
    played_on = engines.names(metafunc.definition) if "engine" in metafunc.fixturenames else []
    if played_on:
        metafunc.parametrize("engine", played_on, indirect=True)


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Keep the ledger on the thread of the stories that watch no threads; at night it has its own there too."""
    is_plain = IS_WIRED or _folder(item.path) not in ON_ONE_THREAD
    return {"loop": asyncio.SelectorEventLoop if is_plain else loop.OneThread}


def _seconds(item: pytest.Item) -> float:
    mark = item.get_closest_marker("long")
    return float(mark.args[0]) if mark is not None else 0.0


def _load_profile(path: Path) -> None:
    settings.load_profile(PROFILES.get(_folder(path), "plain"))


def _folder(path: Path) -> str:
    below = path.relative_to(Path(__file__).parent).parts if path.is_relative_to(Path(__file__).parent) else ()
    return below[0] if below else ""
