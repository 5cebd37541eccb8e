"""Plays seeds, and shrinks the failing ones: works that the lab's workers compute here or on a Dask cluster."""

import contextlib
import gc
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import structlog

from agent.decide.deadline import single_pool_policy
from tests.disasters import draw, play, shrink
from tests.disasters.life import Verdict
from tests.disasters.sight import Broken
from tests.disasters.story import Story
from tests.support import engines

QUIET = 50
POINTS = 6
PACKAGES = ("agent", "strategies", "migrations", "tests")
"""The packages whose files decide a verdict."""
COLLECT_EVERY = 50_000
"""New objects between two collections: a cycle makes thousands, and nearly all of them go by themselves."""
MOST_TABLE_BYTES = 1500 << 20
"""Of a worker's tables for deadlines: all jobs here differ in prices only, and a hundred tables of 14 MB serve them."""


@dataclass(frozen=True, slots=True)
class Ledgers:
    """Where the ledgers of stories are: in memory, in a folder, or on the server of an address."""

    folder: Path | None = None
    server: str = ""


class Playing:
    """Plays some seeds: a work whose problem is `Ledgers` and whose part is a range of seeds."""

    def done(self, ledgers: Ledgers, seeds: Sequence[int]) -> list[Verdict]:
        """Return the verdict of each seed."""
        with ready(ledgers.server):
            return [lived(seed, ledgers.folder) for seed in seeds]

    def is_true(self, ledgers: Ledgers, seeds: Sequence[int], verdicts: list[Verdict]) -> bool:
        """Play the first seed here, and return whether every order of it and its verdict are the same."""
        return len(verdicts) == len(seeds) and self.done(ledgers, seeds[:1]) == verdicts[:1]


class Shrinking:
    """Shrinks a failing story: a work whose part is a seed and how it fails."""

    def done(self, ledgers: Ledgers, failure: tuple[int, Broken]) -> tuple[Story, Broken]:
        """Return the least story that was found to fail at the same point, and how it fails."""
        with ready(ledgers.server):
            return smallest(*failure)

    def is_true(self, ledgers: Ledgers, failure: tuple[int, Broken], found: tuple[Story, Broken]) -> bool:
        """Play the shrunk story here, and return whether it fails in the same way."""
        story, broken = found
        with ready(ledgers.server):
            quietly()
            return broken.point == failure[1].point and _played(story).broken == broken


@contextlib.contextmanager
def ready(server: str = "") -> Iterator[None]:
    """Let this process play many seeds; its ledgers are in files, or on a server. Undo that at the end."""
    thresholds, most_bytes = gc.get_threshold(), single_pool_policy.tables.most_bytes
    _freeze()
    gc.set_threshold(COLLECT_EVERY, 20, 50)
    single_pool_policy.tables.most_bytes = MOST_TABLE_BYTES
    try:
        with engines.played_on(server):
            yield
    finally:
        gc.set_threshold(*thresholds)
        single_pool_policy.tables.most_bytes = most_bytes


@lru_cache(maxsize=1)
def _freeze() -> None:
    """Let the collector skip the imported modules, which are never garbage. Once a process is enough."""
    gc.collect()
    gc.freeze()


def quietly() -> None:
    """Let the program log nothing, because nobody reads the logs of ten thousand disasters."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(QUIET))


def lived(seed: int, folder: Path | None = None) -> Verdict:
    """Play the story of a seed."""
    quietly()
    return _played(draw.story(seed), folder)


def smallest(seed: int, broken: Broken) -> tuple[Story, Broken]:
    """Return the least story of a seed that still fails at the same point, and how it fails."""
    quietly()
    found = [broken]

    def fails(story: Story) -> bool:
        again = _played(story).broken
        if again is None or again.point != broken.point:
            return False
        found.append(again)
        return True

    story = shrink.shrunk(draw.story(seed), fails)
    return story, _played(story).broken or broken


def _played(story: Story, folder: Path | None = None) -> Verdict:
    """Play a story; one that ends by a defect of the engine is a finding of its seed, and the others go on."""
    try:
        return play.play(story, folder)
    except Exception:  # noqa: BLE001 - whatever it is, it must not end a run of ten thousand
        lines = traceback.format_exc().strip().splitlines()
        return Verdict(Broken(0, 0, f"the story ended by a defect of the engine: {lines[-1]}"), (0,) * POINTS, 1, "")
