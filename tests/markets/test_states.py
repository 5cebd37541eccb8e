from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.market.instance import Instance, InstanceState
from agent.markets.vast import parse, states
from tests.support import builders

RAN = "success, running docker.io/x_latest/ssh"
OCI = "Error response from daemon: failed to create task for container: OCI runtime create failed"

OBSERVED = [
    # actual, current, intended, message, ours
    ("", "running", "running", "", InstanceState.PENDING),
    ("", "stopped", "stopped", "", InstanceState.PAUSED),
    ("loading", "running", "running", "#7 Building", InstanceState.LOADING),
    ("created", "running", "running", "Successfully loaded docker.io/x:latest", InstanceState.LOADING),
    ("loading", "stopped", "stopped", "", InstanceState.PAUSED),
    ("loading", "stopped", "running", "", InstanceState.PAUSED),
    ("running", "running", "running", RAN, InstanceState.RUNNING),
    ("running", "running", "stopped", RAN, InstanceState.RUNNING),
    ("exited", "stopped", "stopped", RAN, InstanceState.PAUSED),
    ("stopped", "stopped", "stopped", RAN, InstanceState.PAUSED),
    ("exited", "stopped", "running", RAN, InstanceState.PAUSED),
    ("exited", "running", "running", RAN, InstanceState.EXITED),
    ("created", "stopped", "stopped", OCI, InstanceState.FAILED),
    ("loading", "stopped", "stopped", "pull access denied for x", InstanceState.FAILED),
    ("created", "stopped", "stopped", "Successfully loaded docker.io/x:latest", InstanceState.PAUSED),
    ("created", "running", "running", OCI, InstanceState.LOADING),
    ("exited", "stopped", "stopped", OCI, InstanceState.PAUSED),
    ("offline", "running", "running", RAN, InstanceState.OFFLINE),
    ("offline", "stopped", "stopped", RAN, InstanceState.OFFLINE),
    ("unknown", "running", "running", RAN, InstanceState.OFFLINE),
    ("unknown", "stopped", "stopped", RAN, InstanceState.PAUSED),
    ("rebooting", "running", "running", RAN, InstanceState.LOADING),
    ("recycling", "running", "running", RAN, InstanceState.LOADING),
]

UNSEEN = [
    ("running", "stopped", "stopped"),
    ("exited", "running", "stopped"),
    ("frozen", "running", "running"),
    ("dreaming", "running", "running"),
    ("running", "", "running"),
    ("", "", ""),
    ("running", "paused", "running"),
    ("rebooting", "stopped", "stopped"),
]


@pytest.mark.parametrize(("actual", "current", "intended", "message", "ours"), OBSERVED)
def test_an_observed_combination(actual: str, current: str, intended: str, message: str, ours: InstanceState) -> None:
    assert states.state(actual, current, intended, message) is ours


@pytest.mark.parametrize(
    ("actual", "current", "may_bill"),
    [
        ("unknown", "running", True),
        ("unknown", "", True),
        ("unknown", "stopped", False),
        ("rebooting", "running", True),
        ("recycling", "running", True),
        ("recycling", "stopped", False),
        ("offline", "running", False),
        ("loading", "running", False),
        ("exited", "stopped", False),
    ],
)
def test_gpus_count_as_charged_while_nobody_hears_of_them(actual: str, current: str, may_bill: bool) -> None:
    assert states.may_bill_gpu(actual, current) is may_bill


@pytest.mark.parametrize(("actual", "current", "intended"), UNSEEN)
def test_an_unseen_combination_is_ignorance(actual: str, current: str, intended: str) -> None:
    assert states.state(actual, current, intended, RAN) is InstanceState.UNKNOWN


@given(st.text(max_size=9), st.text(max_size=9), st.text(max_size=9), st.text(max_size=50))
def test_words_nobody_knows_are_never_a_loss(actual: str, current: str, intended: str, message: str) -> None:
    assert states.state("?" + actual, current, intended, message) is InstanceState.UNKNOWN
    assert states.state("running", "?" + current, intended, message) is InstanceState.UNKNOWN


def loaded(*looks: tuple[InstanceState, float | None], minutes: float = 5.0, is_restart: bool = False) -> Instance:
    """Return an instance as the last of these looks shows it: a state and the load of its GPUs.

    After a restart the first of them is the first listing of the process.
    """
    loads = states.Loads()
    if not is_restart:
        loads.keep(())
    for number, (state, load) in enumerate(looks):
        loads.keep({builders.instance().instance_id})
        row = loads.settled(builders.instance(state=state, gpu_util=load), number * minutes * 60)
    return row


RUNS, UNKNOWN = InstanceState.RUNNING, InstanceState.UNKNOWN


@pytest.mark.parametrize("state", [InstanceState.EXITED, InstanceState.LOADING, InstanceState.PENDING])
def test_gpus_at_work_contradict_the_word_that_their_container_does_not_run(state: InstanceState) -> None:
    """One false `exited` of two minutes had a running container paused."""
    doubted = loaded((RUNS, 97.0), *[(state, 97.0)] * 3)
    assert (doubted.state, doubted.bills_gpu) == (UNKNOWN, True)
    assert loaded((RUNS, 97.0), (state, 97.0), (RUNS, 97.0)).state is RUNS
    assert loaded((RUNS, 97.0), *[(state, 90.0 + look) for look in range(9)]).state is UNKNOWN, "it goes on changing"


def test_a_restart_in_the_middle_of_a_false_state_believes_it_no_sooner() -> None:
    """What was seen before is forgotten: the first listing of a process had a running container paused."""
    exited = InstanceState.EXITED, 97.0
    assert loaded(exited, is_restart=True).state is UNKNOWN
    assert loaded(exited, exited, exited, is_restart=True).state is UNKNOWN
    assert loaded(*[exited] * 4, is_restart=True).state is InstanceState.EXITED, "the same load for 15 minutes"
    assert loaded((InstanceState.EXITED, 0.0), is_restart=True).state is InstanceState.EXITED
    assert loaded((InstanceState.PAUSED, 97.0), exited, is_restart=True).state is InstanceState.EXITED


@pytest.mark.parametrize("state", [InstanceState.EXITED, InstanceState.LOADING])
@pytest.mark.parametrize(
    "looks",
    [
        [(RUNS, 97.0), *[("ours", 97.0)] * 4],
        [(RUNS, 97.0), ("ours", None)],
        [(RUNS, 97.0), ("ours", 0.0)],
        [("ours", 97.0)],
        [(RUNS, 97.0), (InstanceState.PAUSED, 97.0), ("ours", 97.0)],
    ],
    ids=["the same load for 15 minutes", "no load", "idle", "never seen running", "stopped in between"],
)
def test_a_state_that_no_load_contradicts_is_the_state(state: InstanceState, looks: list[tuple[Any, Any]]) -> None:
    assert loaded(*[(state if said == "ours" else said, load) for said, load in looks]).state is state


def shown(*looked: tuple[str, str, str], seconds: float = 0.0) -> InstanceState:
    """Return the state of an instance after looks at its words, so many seconds apart."""
    seen = states.Looks()
    for number, (actual, current, intended) in enumerate(looked):
        row = parse.InstanceRow(id=5, actual_status=actual, cur_state=current, intended_status=intended)
        seen.keep({"5"})
        state = seen.settled(parse.instance(row), parse.words(row), number * seconds).state
    return state


STOPPED = ("exited", "stopped", "stopped")


@pytest.mark.parametrize("words", [("running", "stopped", "stopped"), ("exited", "running", "stopped")])
def test_one_word_does_not_deny_that_an_instance_is_stopped(words: tuple[str, str, str]) -> None:
    """Such a word, told for an hour, counted the GPU of a paused lease."""
    assert shown(STOPPED, words, words) is InstanceState.PAUSED
    assert shown(words) is InstanceState.UNKNOWN, "nobody saw it stopped"
    assert shown(STOPPED, ("running", "running", "running"), words) is InstanceState.UNKNOWN, "it ran since"


RUNNING = ("running", "running", "running")


@pytest.mark.parametrize(
    "words", [("running", "stopped", "stopped"), ("?", "stopped", "stopped"), ("exited", "?", "stopped")]
)
def test_an_instance_is_stopped_once_two_words_have_said_so_for_two_minutes(words: tuple[str, str, str]) -> None:
    """An outbid whose first look had one wrong word counted the GPU for as long as the word was wrong."""
    assert shown(RUNNING, words, words, seconds=60.0) is InstanceState.UNKNOWN
    assert shown(RUNNING, words, words, words, seconds=60.0) is InstanceState.PAUSED
    assert shown(RUNNING, words, words, RUNNING, words, seconds=60.0) is InstanceState.UNKNOWN, "it ran since"


def test_a_container_that_ended_is_not_stopped_by_one_word() -> None:
    """Its GPUs count, whatever the market is said to intend."""
    words = ("exited", "running", "stopped")
    assert shown(RUNNING, *[words] * 9, seconds=60.0) is InstanceState.UNKNOWN


@pytest.mark.parametrize(
    "words", [("running", "stopped", "running"), ("exited", "?", "running"), ("?", "?", "stopped")]
)
def test_two_words_deny_that_an_instance_is_stopped(words: tuple[str, str, str]) -> None:
    assert shown(STOPPED, words) is InstanceState.UNKNOWN
