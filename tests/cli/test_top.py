"""`gpubid top` over a real socket of a rehearsed world: its screen at 80 x 24, its keys, and its end."""

import asyncio
import os
import pty
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from agent.cli.shared import daemon_socket
from agent.cli.watch import feed_client, top_rows
from agent.cli.watch.feed_client import FeedClient
from agent.cli.watch.top_screen import Top
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.order import Order
from agent.domain.work.workload import WorkloadKind
from tests.support import launch, programs
from tests.support.programs import gpubid
from tests.support.scene import work
from tests.web.page import Served, served

SIZE = (80, 24)
HOSTILE = "[bold red]taken[/] [@click=app.quit]x[/]"


def screen(pilot: Pilot) -> str:
    """Return the lines on the terminal."""
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


async def seen(pilot: Pilot, *words: str) -> str:
    """Wait until all of the words are on the terminal at once; return everything on it.

    Widgets are laid out one after another: text beside the first word may be drawn a moment after it.
    """
    deadline = time.monotonic() + programs.PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if all(each in (text := screen(pilot)) for each in words):
            return text
        await pilot.pause(0.05)
    missing = [each for each in words if each not in screen(pilot)]
    raise AssertionError(f"never seen: {missing}\n{screen(pilot)}")


def words_of(page: Served) -> set[str]:
    """Return the holds that a person ordered."""
    holds = page.world.app.ledger.recollection(page.world.clock.now()).holds
    return {hold.word.value for hold in holds}


async def changed(page: Served) -> None:
    """Run one cycle, as the daemon does."""
    await page.world.cycle()
    page.feed.changed()


async def test_it_shows_slots_money_and_events_on_80_by_24_without_colour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with served(tmp_path) as page, Top(FeedClient(page.socket)).run_test(size=SIZE) as pilot:
        lease = page.world.lease()
        money = [f"{lease.billing_rate.dollars:.4f}", "today $"]
        money += [f"floor ${lease.host_floor.dollars:.4f}"] if lease.host_floor else []
        work = [f"vast/{lease.host_id}", lease.lease_id, "lease.running"]
        text = await seen(pilot, "1 of 1 slot(s) run", *money, *work, "K kill all", "q quit")
    assert all(len(line) <= SIZE[0] for line in text.splitlines())


async def test_empty_slots_of_an_array_share_a_row_for_which_no_order_is_asked(tmp_path: Path) -> None:
    """Its hundred slots pushed those that bill off the screen."""
    many = work("sweep", kind=WorkloadKind.BATCH, slots=60, array=ArrayTerms(2))
    async with (
        served(tmp_path, running=2, workloads=(many,)) as page,
        Top(FeedClient(page.socket)).run_test(size=SIZE) as pilot,
    ):
        text = await seen(pilot, "2 of 60 slot(s) run", "sweep/0", "sweep/1", "58 empty")
        await pilot.press("down", "down")
        await seen(pilot, "sweep: 58 empty slots, 2-59")
        await pilot.press("p")
        await seen(pilot, "58 slots share this row: `gpubid pause sweep/NUMBER` names one")
    assert "sweep/2" not in text


def test_empty_slots_share_a_row_by_their_reason() -> None:
    def slot(number: int, code: str, *, lease: str = "") -> dict[str, Any]:
        state = "running" if lease else "empty"
        return {"slot": f"sweep/{number}", "lease": lease, "state": state, "decision": {"code": code}}

    slots = [slot(0, "hold", lease="vast-1"), *(slot(each, "array_waits") for each in (1, 2, 4, 6)), slot(5, "held")]
    document = {"slots": slots, "arrays": [{"workload": "sweep"}], "demands": []}
    assert [top_rows.numbers(row) for row in top_rows.of(document)] == ["0", "1-2, 4, 6", "5"]
    assert [len(row) for row in top_rows.of(document | {"arrays": []})] == [1] * 6


async def test_ids_and_money_are_whole_at_sixty_columns_and_after_a_resize(tmp_path: Path) -> None:
    async with served(tmp_path) as page, Top(FeedClient(page.socket)).run_test(size=(60, 24)) as pilot:
        lease = page.world.lease()
        rate, day = f"{lease.billing_rate.dollars:.4f}", f"{page.world.clock.now():%H:%M}"
        whole = ("train/0", lease.lease_id, f"vast/{lease.host_id}", rate, "today $", day, "q quit")
        narrow = await seen(pilot, *whole)
        await pilot.resize_terminal(100, 24)
        wide = await seen(pilot, *whole, "useful", "next")
    assert all(len(line) <= 60 for line in narrow.splitlines())
    assert "useful" not in narrow
    assert "useful" in wide


async def test_an_order_names_lease_and_dollars_and_waits_for_a_yes(tmp_path: Path) -> None:
    async with served(tmp_path) as page, Top(FeedClient(page.socket)).run_test(size=SIZE) as pilot:
        lease = page.world.lease()
        await seen(pilot, "train/0")
        await pilot.press("x")
        rate = f"${lease.billing_rate.dollars:.4f}"
        told = (lease.lease_id, f"{rate}/h, release", f"{rate} an hour now, $0.0000 an hour after it")
        asked = await seen(pilot, "Give this order?", "It is ended for good, with its disk and all files", *told)
        await pilot.press("n")
        declined = await seen(pilot, "not given: release train/0")
        kept = page.world.lease().state
        await pilot.press("x")
        await seen(pilot, "Give this order?")
        await pilot.press("y")
        await seen(pilot, "train/0 release confirmed")
        known = page.world.app.ledger.recollection(page.world.clock.now()).leases
    assert "release train/0" in asked
    assert "the daemon fills a released slot again" in asked
    assert "slot:train/0" not in asked
    assert "release confirmed" not in declined
    assert kept is LeaseState.RUNNING
    assert [each.state for each in known if each.lease_id == lease.lease_id] in ([], [LeaseState.RELEASING])


async def test_leases_that_changed_since_they_were_shown_are_shown_and_asked_again(tmp_path: Path) -> None:
    async with served(tmp_path) as page, Top(FeedClient(page.socket)).run_test(size=SIZE) as pilot:
        before = page.world.lease()
        await seen(pilot, "train/0")
        await pilot.press("x")
        await seen(pilot, "Give this order?", before.lease_id)
        await page.world.app.say(Order("release", before.lease_id), "a test")
        await page.world.until(lambda: [each for each in page.world.leases() if each.lease_id != before.lease_id] != [])
        after = await page.world.until_running()
        await pilot.press("y")
        why = f"train/0 has {after.lease_id} now"
        await seen(pilot, "the leases changed since they were shown", why, f"{after.lease_id} running")
        kept = page.world.lease().state
        await pilot.press("y")
        await seen(pilot, "train/0 release confirmed")
    assert kept is LeaseState.RUNNING


class Waiting(FeedClient):
    """Gives no order before `may_answer`, and finds one of its slot in doubt."""

    may_answer: asyncio.Event

    async def give(self, order: Order) -> Mapping[str, Any]:
        await self.may_answer.wait()
        doubt = {"intent": "i7", "kind": "rent", "lease": "", "slot": "train/0", "market": "vast", "host": "h9"}
        return {"said": f"{order.verb} was taken", "done": [], "in_doubt": [doubt]}


async def test_another_question_does_not_end_the_wait_for_an_answer(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        feed = Waiting(page.socket)
        feed.may_answer = asyncio.Event()
        async with Top(feed).run_test(size=SIZE) as pilot:
            await seen(pilot, "train/0")
            for key in ("y", "n"):
                await pilot.press("x")
                await seen(pilot, "Give this order?")
                await pilot.press(key)
            await seen(pilot, "not given: release train/0")
            feed.may_answer.set()
            await seen(pilot, "release was taken", "rent i7 is in doubt and may bill")


async def test_an_order_without_an_answer_is_a_doubt_and_no_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as page, Top(FeedClient(page.socket)).run_test(size=(120, 24)) as pilot:
        await seen(pilot, "train/0")
        await pilot.press("x")
        await seen(pilot, "Give this order?")
        monkeypatch.setattr(daemon_socket, "ANSWER_SECONDS", 0.2)
        async with page.world.app._turn:
            await pilot.press("y")
            await seen(pilot, "it may have taken the order", "gpubid ledger events --since 10m")


@pytest.mark.parametrize(("key", "word"), [("d", "drain"), ("p", "pause")])
async def test_drain_and_pause_hold_and_resume_ends_them(tmp_path: Path, key: str, word: str) -> None:
    async with served(tmp_path) as page, Top(FeedClient(page.socket)).run_test(size=SIZE) as pilot:
        await seen(pilot, "train/0")
        for each, expected in ((key, {word}), ("r", set())):
            await pilot.press(each)
            await seen(pilot, "Give this order?")
            await pilot.press("y")
            deadline = time.monotonic() + programs.PATIENCE_SECONDS
            while (words := words_of(page)) != expected and time.monotonic() < deadline:
                await pilot.pause(0.05)
            assert words == expected


async def test_a_kill_of_everything_is_an_alert_until_it_is_lifted(tmp_path: Path) -> None:
    async with served(tmp_path) as page, Top(FeedClient(page.socket)).run_test(size=SIZE) as pilot:
        await seen(pilot, "train/0")
        await pilot.press("K")
        await seen(
            pilot, "Give this order?", "kill all", "Every lease is ended for good, with its disk and all files on it"
        )
        await pilot.press("y")
        await seen(pilot, "all spending is stopped")
        await changed(page)
        alerted = await seen(pilot, "! daemon: a kill is in force")
        await pilot.press("L")
        lifting = await seen(pilot, "Give this order?", "lift the kill", "The daemon may rent again")
        await pilot.press("y")
        await seen(pilot, "the stop of all spending is lifted")
    assert alerted.splitlines()[1].startswith("! daemon: a kill is in force")
    assert "ended for good" not in lifting


async def test_text_of_a_market_is_shown_and_never_markup(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        told = Event(at=page.world.clock.now(), kind=EventKind.LEASE_INTERRUPTED, evidence=HOSTILE)
        async with page.world.app.ledger.transaction() as tx:
            tx.append_event(told)
        async with Top(FeedClient(page.socket)).run_test(size=(120, 24)) as pilot:
            assert HOSTILE in await seen(pilot, "taken")


async def test_a_message_about_a_row_may_come_after_the_end(tmp_path: Path) -> None:
    """A slow terminal handled one when the screen was gone, and the program ended with a traceback."""
    async with served(tmp_path) as page:
        top = Top(FeedClient(page.socket))
        async with top.run_test(size=SIZE) as pilot:
            await seen(pilot, "train/0")
        assert not top.screen_stack
        top.on_data_table_row_highlighted()
        top.action_order("drain")


async def test_the_first_line_says_that_the_daemon_is_gone_and_since_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_client, "RETRY_SECONDS", 0.05)
    async with served(tmp_path) as page:
        nothing = Top(FeedClient(tmp_path / "nobody.sock"))
        async with nothing.run_test(size=SIZE) as pilot:
            await seen(pilot, "the daemon does not answer: `gpubid run` starts it")
        async with Top(FeedClient(page.socket)).run_test(size=SIZE) as pilot:
            await seen(pilot, "train/0")
            at = page.world.clock.now().isoformat()[:16]
            page.socket.unlink()
            page.feed.close()
            text = await seen(pilot, "STALE: no daemon answers", f"figures of {at}", "train/0")
    assert f"figures of {at}" in text.splitlines()[0]


async def test_without_a_terminal_it_names_the_verb_for_pipes(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(programs.LIVE.format(url="http://127.0.0.1:9"))
    ran = await gpubid(tmp_path, "top")
    assert ran.code == 2
    assert "gpubid fleet --watch" in ran.err


async def test_a_figure_that_comes_after_its_widget_has_gone_is_no_error(tmp_path: Path) -> None:
    async with served(tmp_path) as page, Top(FeedClient(page.socket)).run_test(size=SIZE) as pilot:
        await seen(pilot, "1 of 1 slot(s) run")
        await pilot.app.query_one("#head").remove()
        deadline = time.monotonic() + programs.PATIENCE_SECONDS
        while "slot(s) run" in screen(pilot) and time.monotonic() < deadline:
            await pilot.pause(0.05)
        pilot.app._show_head()  # type: ignore[attr-defined]
        await pilot.pause()
        assert "slot(s) run" not in screen(pilot)


@pytest.mark.parametrize("ending", ["q", "SIGTERM"])
async def test_it_leaves_the_terminal_as_it_was(tmp_path: Path, ending: str) -> None:
    (tmp_path / "agent.toml").write_text(programs.LIVE.format(url="http://127.0.0.1:9"))
    ours, theirs = pty.openpty()
    environment = programs.environment(tmp_path, TERM="xterm-256color", LINES="24", COLUMNS="80")
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = await launch.start("agent", "top", folder=tmp_path, environment=environment, **streams)
    os.close(theirs)
    try:
        said = await asyncio.to_thread(_until, ours, b"gpubid run")
        if ending == "q":
            os.write(ours, b"q")
        else:
            process.terminate()
        said += await asyncio.to_thread(_until, ours, None)
        code = await asyncio.wait_for(process.wait(), programs.PATIENCE_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
        os.close(ours)
    assert code == 0
    assert said.rindex(b"\x1b[?1049l") > said.rindex(b"\x1b[?1049h")
    assert said.rindex(b"\x1b[?25h") > said.rindex(b"\x1b[?25l")
    assert said.rindex(b"\x1b[?1000l") > said.rindex(b"\x1b[?1000h")
    assert b"Traceback" not in said


def _until(terminal: int, words: bytes | None) -> bytes:
    """Read a terminal until some words, or until its program has ended."""
    said = b""
    while words is None or words not in said:
        try:
            chunk = os.read(terminal, 65_536)
        except OSError:
            return said
        if not chunk:
            return said
        said += chunk
    return said
