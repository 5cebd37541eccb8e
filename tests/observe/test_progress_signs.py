"""What counts as progress of an instance's work between two readings of its log, its page and its guard's line."""

import datetime as dt

import pytest

from agent.domain.work.stall import ProgressSeen
from agent.observe.progress_signs import LOG_LINES, MOST_KNOWN, ProgressSigns
from tests.support.builders import NOW

MINUTE = dt.timedelta(minutes=1)


def beat(sequence: int, progress: str = "5", manifest: str = '"m1"') -> str:
    said = f'"sequence":{sequence},"phase":"running","progress":{progress},"manifest":{manifest}'
    return f'gpubid-guard {{"version":1,{said},"free_disk_bytes":{sequence}}}'


def read(*logs: list[str], hours: tuple[float | None, ...] = ()) -> ProgressSeen | None:
    """Return what a reading a minute has seen of these logs, and of a page with these hours."""
    signs = ProgressSigns()
    for number, lines in enumerate(logs):
        signs.see_log("1", NOW + number * MINUTE, lines)
    for number, shown in enumerate(hours):
        signs.see_page("1", NOW + number * MINUTE, shown)
    return signs.of("1", has_page=bool(hours))


def news_at(*logs: list[str], hours: tuple[float | None, ...] = ()) -> dt.datetime | None:
    seen = read(*logs, hours=hours)
    assert seen is not None
    return seen.news_at


def test_the_first_reading_finds_nothing_new() -> None:
    assert read(["a"]) == ProgressSeen(NOW, NOW)


def test_a_new_line_is_progress_and_the_same_lines_are_none() -> None:
    assert read(["a"], ["a"]) == ProgressSeen(NOW, NOW + MINUTE)
    assert news_at(["a"], ["a", "b"], ["a", "b"]) == NOW + MINUTE
    assert news_at(["a", "b"], ["b", "b"]) == NOW + MINUTE, "the same line once more"


def test_a_log_without_a_line_is_unknown() -> None:
    assert read([]) is None
    assert read(["a"], [], [""]) == ProgressSeen(NOW, NOW)
    assert news_at(["a"], [], ["a"]) is None


def tail(*lines: str, of: int) -> list[str]:
    """Return the tail that a market shows of a log with so many lines, which repeats these."""
    return [lines[number % len(lines)] for number in range(max(of - LOG_LINES, 0), of)]


@pytest.mark.parametrize("lines", [("batch done",), ("step", "loss 0.0")], ids=["one line", "two lines"])
def test_a_full_log_that_repeats_itself_is_unknown(lines: tuple[str, ...]) -> None:
    growing = [tail(*lines, of=10 * number) for number in range(15, 30)]
    assert read(*growing) == ProgressSeen(NOW, NOW + 5 * MINUTE, NOW + 5 * MINUTE), "until it had 200 lines"
    assert news_at(*growing, [*growing[-1][1:], "epoch 2"]) == NOW + 15 * MINUTE


def test_a_log_that_repeats_itself_and_is_not_full_or_differs_before_shows_that_nothing_came() -> None:
    assert read(["batch done"] * 9, ["batch done"] * 9) == ProgressSeen(NOW, NOW + MINUTE)
    hung = [*(f"step {number}" for number in range(150)), *["retrying"] * 50]
    assert len(hung) == LOG_LINES
    assert read(hung, hung) == ProgressSeen(NOW, NOW + MINUTE)


def test_the_guards_step_is_progress_beside_a_log_that_repeats_itself() -> None:
    lines = ["batch done"] * (LOG_LINES - 1)
    assert news_at([*lines, beat(1)], [*lines, beat(2, "6")]) == NOW + MINUTE
    assert read([*lines, beat(1)], [*lines, beat(2)]) == ProgressSeen(NOW, NOW)


def test_the_guards_own_lines_are_no_progress() -> None:
    assert (
        news_at(["a"], ["a", beat(1)], ["a", beat(1), beat(2), "gpubid-guard: the bucket is away", "  "])
        == NOW + MINUTE
    )
    assert news_at(["a", beat(1)], ["a", beat(1), beat(2)], [beat(2), beat(3)]) is None
    assert news_at(["a", "b", beat(1)], ["b", beat(1)], [beat(9)], ["b", beat(9)]) is None, "lines scrolled away"


def test_the_guards_step_and_its_checkpoint_are_progress() -> None:
    assert news_at([beat(1)], [beat(1), beat(2, "6")], [beat(3, "6")]) == NOW + MINUTE
    assert news_at([beat(1)], [beat(2, manifest='"m2"')]) == NOW + MINUTE
    assert news_at([beat(1, "null", "null")], [beat(2, "null", "null")]) is None
    assert news_at([beat(1)], ['gpubid-guard {"version":1,"sequ']) is None, "a line cut off"


def test_changed_hours_on_the_page_are_progress() -> None:
    assert news_at(["a"], ["a"], hours=(1.0, 1.0)) is None
    assert news_at(["a"], ["a"], hours=(1.0, 1.5)) == NOW + MINUTE


def test_a_page_that_cannot_be_read_leaves_the_progress_unknown() -> None:
    assert read(["a"], ["a"], hours=(None, None)) is None
    assert read(["a"], ["a"], hours=(1.0, None)) == ProgressSeen(NOW, NOW)


def test_where_there_is_no_log_the_page_alone_is_read() -> None:
    signs = ProgressSigns()
    signs.see_page("1", NOW, 1.0)
    assert signs.of("1", has_page=True) is None
    assert signs.of("1", has_page=True, has_log=False) == ProgressSeen(NOW, NOW)
    assert signs.of("1", has_page=False, has_log=False) is None


def test_the_memory_is_bounded() -> None:
    signs = ProgressSigns()
    for number in range(MOST_KNOWN + 1):
        signs.see_log(str(number), NOW, ["a"])
    assert signs.of("0", has_page=False) is None
    assert signs.of("1", has_page=False) is not None
