"""Progress deadlines."""

from agent.telemetry.health import Health


class Seconds:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_job_is_late_only_after_its_deadline() -> None:
    seconds = Seconds()
    health = Health(seconds)
    health.expect("cycle", within=60)
    seconds.now += 60
    assert health.is_alive
    seconds.now += 1
    (late,) = health.late()
    assert (late.job, late.seconds, late.deadline) == ("cycle", 61, 60)
    assert str(late) == "cycle made no progress for 61 s, 60 s are allowed"
    health.progressed("cycle")
    assert health.is_alive


def test_one_late_job_starves_the_watchdog_whatever_the_others_do() -> None:
    seconds = Seconds()
    health = Health(seconds)
    health.expect("cycle", within=60)
    health.expect("backup", within=600)
    health.started()
    seconds.now += 61
    health.progressed("backup")
    assert not health.is_alive
    assert not health.is_ready
    health.forget("cycle")
    assert health.is_ready


def test_ready_lies_between_start_and_stop() -> None:
    health = Health(Seconds())
    assert not health.is_ready
    assert health.is_alive
    health.started()
    assert health.is_ready
    health.stopping()
    assert not health.is_ready
    assert health.is_alive


def test_progress_of_a_job_nobody_expects_is_no_promise() -> None:
    seconds = Seconds()
    health = Health(seconds)
    health.progressed("cycle")
    seconds.now += 1e6
    assert health.is_alive


def test_a_job_that_does_what_it_still_can_feeds_the_watchdog_and_is_not_ready() -> None:
    seconds = Seconds()
    health = Health(seconds)
    health.expect("cycle", within=60)
    health.started()
    for _ in range(10):
        seconds.now += 60
        health.went_on("cycle")
        assert health.is_alive
        assert not health.is_ready
    health.progressed("cycle")
    assert health.is_ready
    health.went_on("cycle")
    health.forget("cycle")
    assert health.is_ready
