"""What guards leave in a bucket, read over a real S3 server: bounded, typed, and never missed where it is away."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from agent.clock import SteppedClock
from agent.domain.record.guard_run import GuardRun
from agent.domain.work.guard_report import GuardEnd, GuardReport
from agent.domain.work.guard_terms import Bucket
from agent.guard import end_report
from agent.ledger.memory import Memory
from agent.observe import guard_reader
from agent.observe.guard_reader import GuardReader, GuardTarget
from tests.support import builders, s3_server
from tests.support.s3_server import SECRET, S3Server

FOLDER = "f1/train/0/1"
BEAT = {"version": 1, "sequence": 4, "lease": "00aa", "phase": "running", "progress": 0.5, "unknown": {"x": 1}}
END = {"version": 1, "lease": "00aa", "code": 0, "signal": None, "done": True, "manifest": None, "last_lines": ["bye"]}


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server.served() as running:
        yield running


class Listener:
    """A guard_reader whose time is stepped."""

    def __init__(self, place: Bucket, lease: str = "00aa", *, is_checked: bool = False) -> None:
        self.clock = SteppedClock(builders.NOW)
        self.box = GuardReader(self.clock, asyncio.create_task, lambda _: SECRET)
        self.target = GuardTarget(lease, place, FOLDER, is_urgent=False, is_checked=is_checked)

    async def heard(self, seconds: float = 60.0) -> GuardReport | None:
        """Return the report after the next reading."""
        self.clock.advance(seconds)
        await self.box.look([self.target])
        while self.box._running:
            await self.box.look([self.target])
        return self.box.reports.get(self.target.lease)


async def put(server: S3Server, name: str, content: object) -> None:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    await asyncio.to_thread(server.put, f"train/{FOLDER}/{name}", body)


async def test_a_beat_and_an_end_are_read_once_a_minute(server: S3Server) -> None:
    listener = Listener(server.place())
    silent = await listener.heard()
    assert silent is not None
    assert (silent.beat, silent.end, silent.beat_changed_at) == (None, None, None)
    await put(server, "beat-00aa.json", BEAT)
    assert await listener.heard(30) == silent
    told = await listener.heard(30)
    assert told is not None
    assert told.beat is not None
    assert (told.beat.sequence, told.beat.progress, told.beat_changed_at) == (4, 0.5, told.read_at)
    again = await listener.heard()
    assert again is not None
    assert (again.beat_changed_at, again.read_at > told.read_at) == (told.read_at, True)
    await put(server, "end.json", END)
    over = await listener.heard()
    assert over is not None
    assert over.end == GuardEnd(version=1, lease="00aa", code=0, done=True, last_lines=["bye"])


async def test_a_step_or_a_checkpoint_is_progress_and_a_beat_alone_is_none(server: S3Server) -> None:
    listener = Listener(server.place())
    known = None
    for sequence, told, is_new in (
        (1, {}, False),
        (2, {}, False),
        (3, {"progress": 0.6}, True),
        (4, {"progress": 0.6, "gpu_use": 97.0}, False),
        (5, {"progress": 0.6, "manifest": "m1"}, True),
    ):
        await put(server, "beat-00aa.json", {**BEAT, "sequence": sequence, **told})
        report = await listener.heard()
        assert report is not None
        known = report.read_at if is_new else known
        assert report.work_changed_at == known, sequence
    await put(server, "beat-00aa.json", b"{")
    silent = await listener.heard()
    assert silent is not None
    assert (silent.beat, silent.work_changed_at) == (None, known)


async def test_nobody_knows_how_old_the_first_beat_is_that_was_read(server: S3Server) -> None:
    await put(server, "beat-00aa.json", BEAT)
    listener = Listener(server.place())
    first = await listener.heard()
    await put(server, "beat-00aa.json", {**BEAT, "sequence": 5})
    second = await listener.heard()
    assert first is not None
    assert second is not None
    assert first.beat is not None
    assert (first.beat_changed_at, second.beat_changed_at) == (None, second.read_at)


async def test_a_run_is_known_unfinished_until_the_last_reading_without_its_end(server: S3Server) -> None:
    listener = Listener(server.place())
    works = await listener.heard()
    await put(server, "ended-00aa.json", {**END, "done": False, "code": 3})
    failed = await listener.heard()
    await put(server, "end.json", b"{")
    unread = await listener.heard()
    await put(server, "end.json", END)
    over = await listener.heard(3600.0)
    first = await Listener(server.place()).heard()
    told = [report and report.unfinished_at for report in (works, failed, unread, over, first)]
    assert works is not None
    assert failed is not None
    assert told == [works.read_at, failed.read_at, failed.read_at, failed.read_at, None]


async def test_a_beat_is_dated_by_the_first_reading_that_found_it_also_where_there_is_none(server: S3Server) -> None:
    listener = Listener(server.place())
    silent, still = await listener.heard(), await listener.heard()
    await put(server, "beat-00aa.json", BEAT)
    spoke, same = await listener.heard(), await listener.heard()
    await put(server, "beat-00aa.json", {**BEAT, "sequence": 5})
    again = await listener.heard()
    seen = [report and (report.beat_seen_at, report.read_at) for report in (silent, still, spoke, same, again)]
    reads = [report.read_at for report in (silent, still, spoke, same, again) if report is not None]
    assert seen == list(zip([reads[0], reads[0], reads[2], reads[2], reads[4]], reads, strict=True))


async def test_what_another_lease_says_is_no_beat_and_its_failure_no_end(server: S3Server) -> None:
    await put(server, "beat-00aa.json", BEAT)
    await put(server, "ended-00aa.json", {**END, "done": False, "code": 3})
    mine, others = await Listener(server.place()).heard(), await Listener(server.place(), "00bb").heard()
    assert mine is not None
    assert others is not None
    assert (mine.beat is not None, mine.end is not None and mine.end.code) == (True, 3)
    assert (others.beat, others.end) == (None, None)
    await put(server, "ended-00aa.json", {**END, "done": False, "code": 3, "lease": end_report.OF_NOBODY})
    again = await Listener(server.place()).heard()
    assert again is not None
    assert again.end is None, "its guard has taken it back"
    # Another one's beat under its name is not its own.
    await put(server, "beat-00bb.json", BEAT)
    forged = await Listener(server.place(), "00bb").heard()
    assert forged is not None
    assert forged.beat is None


async def test_two_containers_of_one_slot_are_both_heard_while_it_moves(server: S3Server) -> None:
    old, new = Listener(server.place()), Listener(server.place(), "00bb")
    for sequence in (1, 2, 3):
        await put(server, "beat-00aa.json", {**BEAT, "sequence": sequence, "progress": 9.0})
        await put(server, "beat-00bb.json", {**BEAT, "sequence": sequence, "lease": "00bb", "phase": "restoring"})
        told = [await listener.heard() for listener in (old, new)]
        beats = [report.beat for report in told if report is not None and report.beat is not None]
        assert [(beat.lease, beat.sequence, beat.phase) for beat in beats] == [
            ("00aa", sequence, "running"),
            ("00bb", sequence, "restoring"),
        ]


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"\xff\xfe",
        b"[" * 60_000,
        b"{" + b" " * 70_000 + b"}",
        {**BEAT, "progress": 1e308},
        {**BEAT, "sequence": -1},
        {**BEAT, "sequence": 2**70},
        {**BEAT, "phase": "winning"},
        {**BEAT, "version": 2},
        {**BEAT, "lease": "a" * 300},
        {**BEAT, "upload_seconds": "NaN"},
    ],
    ids=[
        "nothing",
        "no text",
        "deep",
        "large",
        "huge number",
        "negative",
        "no int",
        "phase",
        "version",
        "name",
        "text",
    ],
)
async def test_what_is_no_beat_counts_as_not_there(server: S3Server, junk: object) -> None:
    await put(server, "beat-00aa.json", junk)
    await put(server, "end.json", {**END, "code": 256})
    found = await Listener(server.place()).heard()
    assert found is not None
    assert (found.beat, found.end) == (None, None)


@pytest.mark.parametrize("name", ["end.json", "ended-00aa.json"])
@pytest.mark.parametrize(
    "junk", [b"", b"{" + b" " * 70_000 + b"}", {**END, "code": 256}], ids=["nothing", "large", "code"]
)
async def test_an_end_that_cannot_be_read_is_no_absence(server: S3Server, name: str, junk: object) -> None:
    silent = await Listener(server.place()).heard()
    await put(server, name, junk)
    found = await Listener(server.place()).heard()
    assert silent is not None
    assert found is not None
    assert (silent.unread_end, found.end, found.unread_end) == ("", None, name)


async def test_last_lines_come_without_control_characters(server: S3Server) -> None:
    await put(server, "end.json", {**END, "last_lines": ["\x1b[2Jred\u202e", "a" * 400]})
    found = await Listener(server.place()).heard()
    assert found is not None
    assert found.end is not None
    assert [line.isprintable() for line in found.end.last_lines] == [True, True]
    assert len(found.end.last_lines[1]) == guard_reader.MOST_LINE


async def test_a_bucket_that_is_away_changes_nothing_and_is_told_once(server: S3Server) -> None:
    await put(server, "beat-00aa.json", BEAT)
    listener = Listener(server.place())
    before = await listener.heard()
    assert before is not None
    listener.target = GuardTarget("00aa", S3Server("http://127.0.0.1:9").place(), FOLDER, is_urgent=False)
    with capture_logs() as logged:
        assert await listener.heard() == before
        assert await listener.heard() == before
    assert [each["event"] for each in logged] == ["bucket.away"]
    assert not any(part in str(logged) for part in SECRET.split(":"))


async def test_at_most_so_many_are_read_at_once() -> None:
    started: list[object] = []
    box = GuardReader(SteppedClock(builders.NOW), lambda work: _hung(work, started), lambda _: SECRET)
    place = S3Server("http://127.0.0.1:9").place()
    await box.look([GuardTarget(f"{number:04x}", place, FOLDER, is_urgent=False) for number in range(40)])
    assert len(started) == guard_reader.MOST_AT_ONCE
    await box.close()


async def test_after_a_start_more_leases_than_are_read_at_once_are_all_read_in_the_first_look(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard_reader, "FIRST_PATIENCE_SECONDS", 60.0)  # For a machine with much else to do.
    leases = [f"{number:02x}" for number in range(guard_reader.MOST_AT_ONCE + 4)]
    note = {"version": 1, "silent_seconds": 21_600, "written": 1}
    for lease in leases:
        await put(server, f"deadman-{lease}.json", {**note, "lease": lease})
    box = GuardReader(SteppedClock(builders.NOW), asyncio.create_task, lambda _: SECRET)
    await box.look([GuardTarget(lease, server.place(), FOLDER, is_urgent=False) for lease in leases])
    assert sorted(lease for lease, report in box.reports.items() if report.switch) == leases


@pytest.mark.nightly
async def test_with_a_slow_poll_too_every_one_of_many_leases_is_heard(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same sixteen were read in each look, so the guards of the others seemed to be silent."""
    monkeypatch.setattr(guard_reader, "FIRST_PATIENCE_SECONDS", 60.0)  # For a machine with much else to do.
    monkeypatch.setattr(guard_reader, "PATIENCE_SECONDS", 60.0)
    leases = [f"{number:02x}" for number in range(guard_reader.MOST_AT_ONCE + 4)]
    clock = SteppedClock(builders.NOW)
    box = GuardReader(clock, asyncio.create_task, lambda _: SECRET)
    for _ in range(4):
        await box.look([GuardTarget(lease, server.place(), FOLDER, is_urgent=False) for lease in leases])
        clock.advance(60)
    ages = [clock.now() - report.read_at for report in box.reports.values()]
    assert len(ages) == len(leases)
    assert max(ages) <= timedelta(minutes=2)


def _hung(work: object, started: list[object]) -> asyncio.Task[GuardReport | None]:
    async def hang() -> GuardReport | None:
        await asyncio.sleep(3600)
        return None

    work.close()  # type: ignore[attr-defined]
    started.append(work)
    return asyncio.create_task(hang())


def test_only_leases_that_ran_in_a_known_run_are_listened_to() -> None:
    work = builders.guarded()
    held = builders.lease(1, guard_run=1, has_run=True)
    others = [
        builders.lease(2, has_run=True),
        builders.lease(3, guard_run=2, has_run=True),
        builders.lease(4, guard_run=1, has_run=False),
        builders.lease(5, guard_run=1, has_run=True, is_held=True),
    ]
    memory = Memory(leases={lease.lease_id: lease for lease in (held, *others)})
    memory.guard_runs = [GuardRun(held.slot, 1, "train", "d1", builders.NOW)]
    known = memory.recollection(builders.NOW)
    (found,) = guard_reader.targets(known, [work], "f1")
    assert (found.lease, found.folder, str(found.place)) == (held.intent_id, FOLDER, "s3://runs/train")
    assert guard_reader.targets(known, [builders.workload()], "f1") == ()


CHECK = {"version": 1, "lease": "00aa", "tool": "ok", "gpu_count": 1, "gpus": [{"name": "NVIDIA\x1b[2J A100"}], "x": {}}


async def test_the_check_of_a_host_is_read_cleaned_and_only_where_it_is_wanted(server: S3Server) -> None:
    await put(server, "acceptance-00aa.json", CHECK)
    told = await Listener(server.place(), is_checked=True).heard()
    assert told is not None
    assert told.acceptance is not None
    assert (told.acceptance.gpu_count, len(told.acceptance.gpus)) == (1, 1)
    assert "\x1b" not in str(told.acceptance.gpus[0].name)
    unasked, other = (
        await Listener(server.place()).heard(),
        await Listener(server.place(), "00bb", is_checked=True).heard(),
    )
    assert unasked is not None
    assert other is not None
    assert (unasked.acceptance, other.acceptance) == (None, None)


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"[" * 60_000,
        {**CHECK, "version": 2},
        {**CHECK, "lease": "00bb"},
        {**CHECK, "gpu_count": -1},
        {**CHECK, "gpu_count": 1e308},
        {**CHECK, "gpus": [{"memory_mb": 1e308}]},
        {**CHECK, "gpus": [{}] * 17},
        {**CHECK, "gpus": [{"name": "a" * 65}]},
        {**CHECK, "took_seconds": -1},
        {**CHECK, "matmul_tflops": -1},
        {**CHECK, "cuda_starts": "yes"},
        {**CHECK, "script": {"code": 1000}},
        {**CHECK, "script": {"code": 1, "last_line": "a" * 201}},
    ],
    ids=str,
)
async def test_a_check_of_another_shape_counts_as_not_there(server: S3Server, junk: object) -> None:
    await put(server, "acceptance-00aa.json", junk)
    found = await Listener(server.place(), is_checked=True).heard()
    assert found is not None
    assert found.acceptance is None
