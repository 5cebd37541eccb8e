"""A guard that goes on with the next task of its array in the same container: real processes and a real S3 server."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.guard.bucket_notes import END, BucketNotes
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_settings import BucketPlace
from agent.guard.s3.s3_objects import S3Objects
from agent.guard.tasks import next_task
from agent.guard.tasks.next_task import NextTask
from agent.guard.tasks.task_file import TaskFile
from agent.guard.tasks.task_watch import WAITS_SECONDS
from tests.support import s3_servers, store_proxy
from tests.support.guarded import Instance, until
from tests.support.s3_servers import Store

ALLOWED = ("GPUBID_SLOT", "LR")
ROOT, NEXT = "prefix/fleet/sweep/17/1", "prefix/fleet/sweep/18/1"
RENTED = {"GPUBID_SLOT": "17", "LR": "0.1", "OTHER": "stays", "SIM_SPEED": "1000"}
FOLLOWING = NextTask("L2", NEXT, 1, manifest_exists=False, variables={"GPUBID_SLOT": "18", "LR": "0.2"})


@pytest.fixture
def notes(store: Store) -> Iterator[BucketNotes]:
    place = BucketPlace(store.url, "us-east-1", store.bucket, ROOT, s3_servers.KEY_ID, s3_servers.SECRET, "")
    objects = S3Objects(place, GuardClock())
    yield BucketNotes(objects, ROOT)
    objects.close()


def command(instance: Instance) -> list[str]:
    """Return a task that notes which it is, what it finds at its path, and leaves a result there."""
    seen, result = instance.place / "seen", instance.work / "result"
    script = f'echo "$GPUBID_SLOT $LR $OTHER $(cat {result} 2>/dev/null)" >> {seen}; echo "of $GPUBID_SLOT" > {result}'
    return ["sh", "-c", script]


def seen(instance: Instance) -> list[str]:
    try:
        return (instance.place / "seen").read_text().splitlines()
    except FileNotFoundError:
        return []


def told(store: Store, **changes: Any) -> dict[str, Any]:
    return {"next_variables": list(ALLOWED), "bucket": store.place(ROOT), "ask": "none", **changes}


def end_of(notes: BucketNotes, root: str) -> str:
    found = BucketNotes(notes.store, root).read(END)
    return "" if found is None else str(found[0].get("lease"))


def assigned(notes: BucketNotes, task: NextTask, after: str = "L1", root: str = ROOT) -> None:
    BucketNotes(notes.store, root).write(next_task.note_name(after), task.note())


def test_a_done_guard_begins_the_assigned_task_in_its_own_folder_with_its_own_values(
    instance: Instance, store: Store, notes: BucketNotes
) -> None:
    with instance.started(*command(instance), env=RENTED | store.keys, **told(store)) as guard:
        first = guard.process.pid
        guard.phase("done")
        assigned(notes, FOLLOWING)
        until(lambda: end_of(notes, NEXT), "the end of the next task", guard.text)
        # The first task's files are gone, and what the rent gave to every task is there.
        assert seen(instance) == ["17 0.1 stays ", "18 0.2 stays "]
        assert (end_of(notes, ROOT), end_of(notes, NEXT)) == ("L1", "L2")
        beats = [beat["lease"] for beat in guard.beats()]
        assert beats == sorted(beats)
        assert (guard.process.pid, guard.process.poll()) == (first, None)
        # The chain goes on from the second task, and no note of another lease counts.
        third = NextTask("L3", "prefix/fleet/sweep/19/1", 1, manifest_exists=False, variables={"GPUBID_SLOT": "19"})
        assigned(notes, third, after="L2", root=NEXT)
        until(lambda: end_of(notes, third.root), "the end of the third task", guard.text)
    # A task without a value of its own has the rent's.
    assert seen(instance)[2:] == ["19 0.1 stays "]


def test_a_task_is_looked_for_from_when_the_bucket_has_the_end(
    instance: Instance, store: Store, notes: BucketNotes
) -> None:
    """The bucket was away for twenty minutes at the end: the host was kept, and nobody looked for its task any more."""
    is_away = True
    with store_proxy.before(store) as proxy:
        proxy.fault = lambda method, path: 503 if is_away and method == "PUT" and "end.json" in path else None
        place = told(store, bucket=store.place(ROOT, endpoint=proxy.url))
        with instance.started(*command(instance), env=RENTED | store.keys, **place) as guard:
            guard.said("the end is not in the bucket")
            time.sleep(1.5 * WAITS_SECONDS / 1000)  # at the guard's speed
            is_away = False
            guard.phase("done")
            assigned(notes, FOLLOWING)
            until(lambda: end_of(notes, NEXT), "the end of the next task", guard.text)


def test_a_container_that_starts_again_goes_on_with_the_task_that_it_took(
    instance: Instance, store: Store, notes: BucketNotes
) -> None:
    words = ["sh", "-c", f'{command(instance)[2]}; [ "$GPUBID_SLOT" = 17 ] || exec sleep 1000']
    with instance.started(*words, env=RENTED | store.keys, **told(store)) as guard:
        guard.phase("done")
        assigned(notes, FOLLOWING)
        until(lambda: len(seen(instance)) == 2, "the next task", guard.text)
    # As after an outbid: the environment of the rent, and the disk as it was.
    with instance.started(*words, env=RENTED | store.keys, **told(store)) as guard:
        until(lambda: len(seen(instance)) == 3, "the same task", guard.text)
    assert seen(instance) == ["17 0.1 stays ", "18 0.2 stays ", "18 0.2 stays of 18"]
    assert not end_of(notes, NEXT)


def test_a_disk_that_lost_the_guards_folder_finds_the_task_by_its_notes(
    instance: Instance, store: Store, notes: BucketNotes, tmp_path: Path
) -> None:
    with instance.started(*command(instance), env=RENTED | store.keys, **told(store)) as guard:
        guard.phase("done")
    assigned(notes, FOLLOWING)
    other = Instance(tmp_path / "other")
    with other.started(*command(other), env=RENTED | store.keys, **told(store)) as guard:
        until(lambda: end_of(notes, NEXT), "the end of the next task", guard.text)
    assert seen(other) == ["18 0.2 stays "]


def test_a_guard_without_the_setting_takes_no_task(instance: Instance, store: Store, notes: BucketNotes) -> None:
    assigned(notes, FOLLOWING)
    with instance.started(*command(instance), env=RENTED | store.keys, bucket=store.place(ROOT), ask="none") as guard:
        guard.phase("done")
        beats = len(guard.beats())
        until(lambda: len(guard.beats()) > beats + 1, "two more minutes of the guard's time", guard.text)
    assert seen(instance) == ["17 0.1 stays "]


def test_a_disk_that_cannot_be_emptied_is_not_called_clean(tmp_path: Path) -> None:
    file = TaskFile(tmp_path, "L1")
    assert file.take(FOLLOWING)
    assert not file.cleaned(FOLLOWING, ["/proc/self"])
    assert json.loads((tmp_path / "task.json").read_text())["is_clean"] is False
    # The guard of the rent's own task sleeps then, and takes none any more.
    assert json.loads(next_task.without({"GPUBID_GUARD": "{}"})["GPUBID_GUARD"])["next_variables"] is None


@pytest.mark.parametrize("cut", ["before", "after", "clean"])
def test_a_crash_between_two_tasks_leaves_the_disk_of_one_of_them(tmp_path: Path, cut: str) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    (work / "result").write_text("of 17")
    (home / "state.json").write_text("{}")
    file = TaskFile(home, "L1")
    assert file.task(ALLOWED) is None
    assert file.take(FOLLOWING)
    if cut == "after":
        # Half of it was removed when the container was killed.
        (home / "state.json").unlink()
    if cut == "clean":
        assert file.cleaned(FOLLOWING, [str(work)])
        (work / "result").write_text("of 18")
    again = TaskFile(home, "L1")
    assert again.task(ALLOWED) == FOLLOWING
    assert again.cleaned(FOLLOWING, [str(work)])
    assert [path.read_text() for path in work.iterdir()] == (["of 18"] if cut == "clean" else [])
    assert [path.name for path in home.iterdir()] == ["task.json"]
    # Another rent on such a disk, as from an image, has its own task.
    assert TaskFile(home, "L9").task(ALLOWED) is None


NOTE = FOLLOWING.note()
WRONG = [
    {"lease": "L2/x"},
    {"lease": 2},
    {"root": "prefix/.."},
    {"root": "/prefix"},
    {"root": ""},
    {"run": 0},
    {"run": True},
    {"variables": {"LD_PRELOAD": "x"}},
    {"variables": {"LR": 1}},
    {"variables": {"LR": "a\0b"}},
    {"variables": None},
]


@pytest.mark.parametrize("change", WRONG)
def test_a_note_that_is_not_as_the_daemon_writes_it_begins_nothing(change: dict[str, Any]) -> None:
    assert next_task.parsed({**NOTE, **change}, ALLOWED) is None
    assert next_task.parsed(NOTE, ALLOWED) == FOLLOWING


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda each: st.lists(each, max_size=3))


@given(st.dictionaries(st.sampled_from([*NOTE, "else"]), JSON, max_size=6))
def test_no_note_sets_a_variable_that_the_rent_did_not_name(note: dict[str, Any]) -> None:
    found = next_task.parsed({**NOTE, **note}, ALLOWED)
    assert found is None or set(found.variables) <= set(ALLOWED)
