"""The dead man's switch: real guards in simulated containers, a real S3 server, the markets' own HTTP APIs."""

import contextlib
import json
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.act.guarding import guard_launch
from agent.config import guard_archive
from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints.checkpoint_list import CheckpointList
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_settings import BucketPlace
from agent.guard.s3.s3_objects import S3Objects
from tests.support import counter, s3_servers, trainer
from tests.support.container_scene import REAL, Scene, real_market
from tests.support.guarded import ROOT, Instance
from tests.support.guarded import until as sync_until
from tests.support.pods import running_pods
from tests.support.programs import until
from tests.support.s3_servers import Store

SERVER = next(name for name in ("s3rver", "moto") if s3_servers.HERE[name])
ENDING = "a server of its own that ends"
HOUR, MONTH = 3_600, 30 * 86_400
STOPPED = ("exited", "stopped", "stopped", "stopped")
FAST, CALM = 1_000, 60
"""Seconds of the guard in a real one. A busy machine counts less silence, never more: each answer is worth a minute."""
ASLEEP = counter.python("import time; time.sleep(600)")
SCRIPT = (
    'export SIM_SPEED=$SPEED GPUBID_GUARD="$(printf %s "$TOLD" | sed "s#DISK#$SIM_DISK#g")"\n'
    'export GPUBID_GUARD_HOME="$SIM_DISK/guard"; mkdir -p "$GPUBID_GUARD_HOME"\n'
    '[ -z "$LEFT" ] || [ -e "$GPUBID_GUARD_HOME/state.json" ] || printf %s "$LEFT" > "$GPUBID_GUARD_HOME/state.json"\n'
    'for word; do shift; set -- "$@" "$(printf %s "$word" | sed "s#^DISK#$SIM_DISK#")"; done\nexec "$@"'
)


class Mailbox(BucketNotes):
    """The daemon's side of the bucket."""

    def alive(self, written: int, absent_seconds: float = 0) -> str:
        """Write a sign of life; return its tag."""
        assert self.write("alive.json", {"version": 1, "written": written, "absent_seconds": absent_seconds})
        found = self.read("alive.json")
        assert found is not None
        return found[1]

    def noted(self) -> dict[str, Any]:
        """Return the note that the guard wrote before it asked the market, or nothing."""
        found = self.read("deadman-L1.json")
        return dict(found[0]) if found is not None else {}


@pytest.fixture
def servers() -> Iterator[contextlib.ExitStack]:
    """What a test closes that ends its server."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def store(request: pytest.FixtureRequest, servers: contextlib.ExitStack, tmp_path: Path) -> Store:
    (tmp_path / guard_archive.NAME).write_bytes(guard_archive.packed())
    if getattr(request, "param", None) == ENDING:
        return servers.enter_context(s3_servers.running(SERVER, tmp_path / "store"))
    return s3_servers.shared(SERVER, tmp_path.parent)


@pytest.fixture
def mailbox(store: Store) -> Iterator[Mailbox]:
    place = BucketPlace(store.url, "us-east-1", store.bucket, ROOT, s3_servers.KEY_ID, s3_servers.SECRET, "")
    objects = S3Objects(place, GuardClock())
    yield Mailbox(objects, ROOT)
    objects.close()


def command(folder: Path, work: list[str]) -> list[str]:
    """Return a container's command: the work under the guard, on its disk."""
    program = [sys.executable, "-I", "-S", str(folder / guard_archive.NAME), "--", *work]
    return ["sh", "-c", SCRIPT, "-", *program]


def variables(
    folder: Path, store: Store, deadman: dict[str, Any], *, speed: int = FAST, left: Any = None, **changes: Any
) -> dict[str, str]:
    """Return the variables of such a container; `left` is the count that an earlier guard left on the disk."""
    switch = {"after_seconds": HOUR, "destroy": False, **deadman}
    told = Instance(folder / "settings").settings(
        paths=["DISK/ckpt"], complete="state.json", bucket=store.place(ROOT), deadman=switch, **changes
    )
    state = "" if left is None else json.dumps({"run": 1, "deadman": left})
    return {"TOLD": json.dumps(told), "LEFT": state, "SPEED": str(speed), **store.keys}


def vast(scene: Scene, **changes: Any) -> dict[str, Any]:
    return {"api": scene.market.simulator.vast_url, **guard_launch.asking("vast"), **changes}


async def rented(scene: Scene, folder: Path, work: list[str], environment: dict[str, str]) -> int:
    return await scene.started(runtype="args", args=command(folder, [*work, scene.mark]), env=environment)


def asked(scene: Scene, method: str, instance: int) -> list[int]:
    """Return how the market answered requests about an instance."""
    path = f"/api/v0/instances/{instance}/"
    return [status for _, verb, where, status in scene.market.simulator.api.calls if (verb, where) == (method, path)]


async def states(scene: Scene, instance: int) -> tuple[Any, ...]:
    record = await scene.market.instance(instance)
    return tuple(record[name] for name in ("actual_status", "cur_state", "next_state", "intended_status"))


async def stopped(scene: Scene, instance: int) -> None:
    async def is_stopped() -> bool:
        return await states(scene, instance) == STOPPED

    await until(is_stopped, "a stopped instance")


async def said(scene: Scene, instance: int, part: str) -> None:
    async def has_said() -> bool:
        return any(part in line for line in await scene.log(instance))

    await until(has_said, part)


def silence(scene: Scene, instance: int) -> float:
    """Return how long the guard has counted, as its disk has it."""
    file = scene.disk(instance) / "guard/state.json"
    state = json.loads(file.read_text()) if file.exists() else {}
    return float(state.get("deadman", {}).get("silent_seconds", 0.0))


@pytest.mark.long(20)
async def test_it_fires_once_and_only_after_the_time_also_over_a_restart(
    tmp_path: Path, store: Store, mailbox: Mailbox
) -> None:
    # So slow that a busy machine sees the count, and takes the instance, long before the switch fires.
    speed, so_far = 150, HOUR / 2
    left = {"tag": mailbox.alive(1), "written": 1, "absent_seconds": 0.0, "silent_seconds": so_far}
    async with real_market(tmp_path / "disks") as scene:
        began = time.monotonic()
        environment = variables(tmp_path, store, vast(scene), speed=speed, left=left, ask="none")
        made = await rented(scene, tmp_path, ASLEEP, environment)
        await until(lambda: silence(scene, made) > so_far, "a longer count")
        rival = await scene.outbid(made)
        counted = silence(scene, made)
        assert asked(scene, "PUT", made) == []
        await scene.resumed(made, rival)
        lowest: list[float] = []

        async def has_fired() -> bool:
            lowest.append(silence(scene, made))
            return bool(asked(scene, "PUT", made))

        await until(has_fired, "a request to the market")
        assert time.monotonic() - began >= (HOUR - so_far) / speed
        # The market's yes is the end of the guard, so the disk has it before: a next start counts from nothing.
        assert silence(scene, made) == 0.0
        assert min(filter(None, lowest), default=counted) >= counted
        assert (asked(scene, "PUT", made), await states(scene, made)) == ([200], STOPPED)
        note = mailbox.noted()
        assert note.pop("silent_seconds") >= HOUR
        assert note == {"version": 1, "lease": "L1", "written": 1, "manifest": None, "destroys": False}


async def test_the_last_checkpoint_is_carried_before_and_the_market_is_asked_until_it_does_it(
    tmp_path: Path, store: Store, mailbox: Mailbox
) -> None:
    left = {"tag": mailbox.alive(1), "written": 1, "absent_seconds": 0.0, "silent_seconds": HOUR - 120.0}
    async with real_market(tmp_path / "disks") as scene:
        await scene.market.weather("html_403", route="PUT /instances", count=1)
        await scene.market.weather("server_error_before", route="PUT /instances", count=2, status=500)
        environment = variables(tmp_path, store, vast(scene), speed=CALM, left=left, interval_seconds=86_400)
        made = await rented(scene, tmp_path, trainer.command("DISK/ckpt"), environment)
        await stopped(scene, made)
        assert asked(scene, "PUT", made) == [403, 500, 200]
        # None was due by the interval: the present one was made for this.
        newest = CheckpointList(mailbox, "test").pointed()
        assert newest is not None
        assert newest.lease == "L1"
        saved = json.loads((scene.disk(made) / "ckpt/state.json").read_text())[1]
        assert 0 < trainer.carried_step(mailbox) == saved
        note = mailbox.noted()
        assert (note["manifest"], note["destroys"]) == (newest.name, False)
        log = await scene.log(made)
        assert any("the market answered 403, tried again in 60 s" in line for line in log)
        key = scene.market.simulator.gate.instance_key(made)
        assert not any(key in line for line in log)
        assert key not in (scene.disk(made) / "guard/state.json").read_text()


@pytest.mark.parametrize("is_whole", [True, False], ids=["whole", "torn"])
async def test_the_disk_is_given_up_only_with_a_checkpoint_that_is_whole(
    tmp_path: Path, store: Store, mailbox: Mailbox, *, is_whole: bool
) -> None:
    mailbox.alive(1, MONTH)
    async with real_market(tmp_path / "disks") as scene:
        environment = variables(tmp_path, store, vast(scene, destroy=True))
        made = await rented(scene, tmp_path, trainer.command("DISK/ckpt", 50), environment)
        await said(scene, made, "asleep until the instance is released")
        await until(lambda: mailbox.read("end.json"), "the end in the bucket")
        newest = CheckpointList(mailbox, "test").pointed()
        assert newest is not None
        if not is_whole:
            mailbox.store.delete(mailbox.key(f"ckpt/{newest.id}/0/state.json"))
        assert (asked(scene, "PUT", made), asked(scene, "DELETE", made)) == ([], [])
        mailbox.alive(2)
        method = "DELETE" if is_whole else "PUT"
        await until(lambda: asked(scene, method, made), f"a {method}")
        assert (asked(scene, "PUT", made), asked(scene, "DELETE", made)) == (([], [200]) if is_whole else ([200], []))
        assert scene.disk(made).exists() is not is_whole
        note = mailbox.noted()
        assert (note["written"], note["manifest"], note["destroys"]) == (2, newest.name, is_whole)
        contract = next(row for row in (await scene.market.truth())["contracts"] if row["id"] == made)
        assert (contract["end_cause"] == "destroyed") is is_whole


async def test_work_that_is_saved_nowhere_is_stopped_and_not_ended(
    tmp_path: Path, store: Store, mailbox: Mailbox
) -> None:
    async with real_market(tmp_path / "disks") as scene:
        environment = variables(tmp_path, store, vast(scene, destroy=True), ask="none")
        made = await rented(scene, tmp_path, ASLEEP, environment)
        await stopped(scene, made)
        assert (asked(scene, "PUT", made), asked(scene, "DELETE", made)) == ([200], [])
        assert scene.disk(made).exists()
        assert mailbox.noted()["destroys"] is False


async def test_a_sign_of_life_at_the_last_moment_calls_it_off(tmp_path: Path, store: Store, mailbox: Mailbox) -> None:
    left = {"tag": mailbox.alive(1), "written": 1, "absent_seconds": 0.0, "silent_seconds": HOUR - 60.0}
    code = (
        "import signal, time\nsignal.signal(signal.SIGUSR1, lambda *_: print('asked', flush=True))\n"
        "print('up', flush=True)\nwhile True: time.sleep(0.1)"
    )
    async with real_market(tmp_path / "disks") as scene:
        environment = variables(tmp_path, store, vast(scene), speed=2 * CALM, left=left, interval_seconds=86_400)
        made = await rented(scene, tmp_path, counter.python(code), environment)
        # It was asked for its last checkpoint, and makes none.
        await scene.printed(made, "asked")
        mailbox.alive(2, MONTH)
        await said(scene, made, "the daemon is back, the instance goes on")
        await until(lambda: silence(scene, made) >= 300.0, "five more minutes")
        assert (asked(scene, "PUT", made), mailbox.noted()) == ([], {})
        assert (await states(scene, made))[0] == "running"


@pytest.mark.nightly
async def test_a_note_that_was_written_is_taken_back_when_the_daemon_is_back(
    tmp_path: Path, store: Store, mailbox: Mailbox
) -> None:
    mailbox.alive(1)
    async with real_market(tmp_path / "disks") as scene:
        await scene.market.weather("server_error_before", route="PUT /instances", status=500)
        made = await rented(scene, tmp_path, ASLEEP, variables(tmp_path, store, vast(scene), ask="none"))
        await until(lambda: len(asked(scene, "PUT", made)) >= 2, "two refused requests")
        # A store may have no note at all for the moment in which the guard replaces it.
        await until(lambda: mailbox.noted().get("silent_seconds", 0.0) >= HOUR, "a note of the silence")
        mailbox.alive(2, MONTH)
        await until(lambda: mailbox.noted().get("called_off"), "a note that is taken back")
        count = len(asked(scene, "PUT", made))
        await until(lambda: silence(scene, made) >= 600.0, "ten minutes")
        assert len(asked(scene, "PUT", made)) == count
        assert (await states(scene, made))[0] == "running"


@pytest.mark.parametrize("store", [ENDING], indirect=True)
@pytest.mark.nightly
async def test_a_bucket_that_is_away_is_no_silence(
    tmp_path: Path, servers: contextlib.ExitStack, store: Store, mailbox: Mailbox
) -> None:
    speed = 400
    mailbox.alive(1)
    async with real_market(tmp_path / "disks") as scene:
        environment = variables(tmp_path, store, vast(scene), speed=speed, ask="none")
        made = await rented(scene, tmp_path, ASLEEP, environment)
        await until(lambda: silence(scene, made) > 0.0, "a count")
        servers.close()
        await said(scene, made, "gpubid-guard: the bucket is away")
        counted = silence(scene, made)
        began = time.monotonic()

        async def has_lasted() -> bool:
            beats = [line for line in await scene.log(made) if line.startswith("gpubid-guard {")]
            boots = [json.loads(line.partition(" ")[2])["boot_seconds"] for line in beats]
            return boots[-1] - boots[0] > 1.2 * HOUR and time.monotonic() - began > HOUR / speed

        await until(has_lasted, "more than an hour of the guard")
        # An answer that was on its way when the server went may still count.
        assert silence(scene, made) <= counted + 60.0 < HOUR
        assert asked(scene, "PUT", made) == []
        assert (await states(scene, made))[0] == "running"


HOSTILE = {
    "absent": None,
    "torn": b'{"version": 1, "writ',
    "huge": b"x" * 5_000_000,
    "numbers": b'{"version":1,"written":1e308,"absent_seconds":1e308}',
}
IN_CI = ("absent", "huge")
"""The others are judged in CI by what reads them alone (test_deadman_switch.py)."""


@pytest.mark.parametrize(
    "content",
    [pytest.param(HOSTILE[name], id=name) for name in IN_CI]
    + [pytest.param(HOSTILE[name], id=name, marks=pytest.mark.nightly) for name in sorted(HOSTILE.keys() - set(IN_CI))],
)
async def test_a_pod_is_stopped_by_its_own_key_whatever_its_sign_of_life_holds(
    tmp_path: Path, store: Store, mailbox: Mailbox, content: bytes | None
) -> None:
    if content is not None:
        mailbox.store.put(mailbox.key("alive.json"), content)
    async with running_pods(REAL, registry=counter.Registry(tmp_path / "disks")) as pods:
        deadman = {"api": pods.simulator.runpod_url, **guard_launch.asking("runpod")}
        words = shlex.join(command(tmp_path, ASLEEP))
        made = await pods.created(args=words, env=variables(tmp_path, store, deadman, ask="none"))
        await pods.running(made)

        async def is_stopped() -> bool:
            return bool((await pods.show(made))["status"] == "EXITED")

        await until(is_stopped, "a stopped pod")
        orders = [call for call in pods.simulator.runpod_api.calls if call[1] == "POST" and made in call[2]]
        assert [(place, status) for _, _, place, status in orders] == [(f"/v2/pods/{made}/action", 200)]
        note = mailbox.noted()
        assert (note["silent_seconds"] >= HOUR, note["written"]) == (True, None)


def test_without_the_markets_key_it_says_so_and_never_fires(tmp_path: Path, store: Store, mailbox: Mailbox) -> None:
    instance = Instance(tmp_path / "one")
    deadman = {"after_seconds": HOUR, "destroy": False, "api": "http://127.0.0.1:9", **guard_launch.asking("vast")}
    with instance.started(*ASLEEP, store=store, ask="none", deadman=deadman, env={"SIM_SPEED": f"{FAST}"}) as guard:
        guard.said("the switch never fires")
        assert guard.phase("running")["deadman"] == "no_key"
        sync_until(lambda: guard.beats()[-1]["boot_seconds"] - guard.beats()[0]["boot_seconds"] > 1.2 * HOUR, "an hour")
        assert "the daemon has been silent" not in guard.text()
        assert mailbox.noted() == {}


def test_without_a_switch_a_beat_says_nothing_of_one(tmp_path: Path, store: Store) -> None:
    with Instance(tmp_path / "one").started(*ASLEEP, store=store, ask="none") as guard:
        assert "deadman" not in guard.phase("running")
