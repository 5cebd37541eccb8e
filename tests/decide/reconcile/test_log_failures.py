"""The last lines of a log that show a failure."""

import pytest

from agent.decide.reconcile.probes import log_failures


@pytest.mark.parametrize(
    "last",
    [
        "Traceback (most recent call last):",
        "2026-07-27T00:00:00Z RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "ValueError: bad shape",
        "Killed",
        "Segmentation fault (core dumped)",
        "bash: trian.py: command not found",
        "python: can't open file 'trian.py': [Errno 2] No such file or directory",
        "process exited with code 137",
    ],
)
def test_last_words_of_a_failure(last: str) -> None:
    assert log_failures.line(["epoch 1", last, "image: stopped"]) == last


@pytest.mark.parametrize("last", ["epoch 90: done", "0 errors", "exited with code 0", "test error rate 0.02", "saved"])
def test_last_words_of_work_that_is_done(last: str) -> None:
    assert log_failures.line(["epoch 1", last]) == ""


def test_what_was_caught_long_before_the_end_does_not_count() -> None:
    assert log_failures.line(["ValueError: retried", *(f"epoch {number}" for number in range(40))]) == ""


def test_no_log_tells_nothing() -> None:
    assert log_failures.line([]) == ""
