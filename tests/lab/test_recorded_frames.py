"""A scenario recorded through real HTTP gives the identical plan sequence in the lab, byte for byte."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from agent.act.frame_recorder import Recorder, folder_of
from agent.cli.main import app
from agent.decide import plan, plan_recording
from agent.decide.limits.limits import Limits
from agent.domain.market.market_rules import ASSUMED, MarketRules, Places, PricePaid
from agent.domain.money import per_hour
from agent.domain.work.decision import Option, Reason
from agent.lab.engine import recorded_frames
from agent.lab.engine.recorded_frames import RecordingError
from agent.strategy_files import installed
from tests.lab import recorded_engine
from tests.support import builders
from tests.support.scene import strategies, work
from tests.support.world import rehearsed

REGISTRY = recorded_frames.by_code(installed())
MINUTE = timedelta(minutes=1)
SECRET = "s3cret-value"


async def test_what_was_decided_over_http_is_decided_again_byte_for_byte(tmp_path: Path) -> None:
    workloads = (work(environment=(("TOKEN", SECRET),)), work("other"))
    async with rehearsed(tmp_path, seed=8, workloads=workloads, recording_bytes=10**7) as world:
        held = await world.until_running()
        await world.cycle(minutes=10)
        world.rival(int(held.host_id), bid=held.gpu_rate.dollars * 3)
        await world.cycle(minutes=15)
        live, folder = world.plans, folder_of(world.config.ledger)
    frames = [one for file in recorded_frames.files(folder) for one in recorded_frames.frames(file)]
    assert [one.fleet.now for one in frames] == [made.now for made in live]
    assert recorded_frames.verify(frames, REGISTRY) == (len(live), None)
    for one, made in zip(frames, live, strict=True):
        assert recorded_frames.again(one, REGISTRY) == plan_recording.answer(made.decisions, made.standing)
    kinds = [kind for one in frames for kind, _ in plan_recording.decisions_of(one.answer)]
    assert {"Rent", "Pause", "Release", "Hold"} <= set(kinds), "a story in which nothing happens proves nothing"
    assert all(not item.environment for one in frames for item in one.fleet.workloads)
    assert all(SECRET.encode() not in part for one in frames for part in plan_recording.parts(one).values())


async def test_an_engine_that_sees_only_the_recorded_views_decides_the_same(tmp_path: Path) -> None:
    """It does not get the ledger's memory: it keeps leases, cooldowns, losses and hosts itself."""
    async with rehearsed(tmp_path, seed=8, recording_bytes=10**7) as world:
        held = await world.until_running()
        await world.cycle(minutes=10)
        world.rival(int(held.host_id), bid=held.gpu_rate.dollars * 3)
        await world.cycle(minutes=25)
        live, folder = world.plans, folder_of(world.config.ledger)
    frames = [one for file in recorded_frames.files(folder) for one in recorded_frames.frames(file)]
    made = recorded_engine.lived(frames, REGISTRY)
    assert [_gist(one) for one in made] == [_gist(one) for one in live]
    assert {"Rent", "Pause", "Release"} <= {kind for one in live for kind, *_ in _gist(one)}


def _gist(made: plan.Plan) -> list[tuple[object, ...]]:
    """Return what each decision would do and why, to the figure; an intent's number is drawn, and is left out."""
    return [
        (
            type(each).__name__,
            getattr(getattr(each, "offer", None), "host_id", None),
            getattr(getattr(each, "lease", None), "lease_id", None),
            getattr(each, "bid", None),
            each.reason,
        )
        for each in made.decisions
    ]


def _recorder(folder: Path, most_bytes: int = 10**6) -> Recorder:
    return Recorder(folder, most_bytes)


def _see(recorder: Recorder, **changes: object) -> None:
    fleet, tuned = builders.fleet(workloads=(work(),), **changes), strategies()
    recorder.see(fleet, tuned, Limits(), frozenset({"vast"}), plan.plan(fleet, tuned, Limits(), frozenset({"vast"})))


def test_a_frame_is_read_back_as_it_was_written_and_only_changes_cost_room(tmp_path: Path) -> None:
    recorder = _recorder(tmp_path / "r")
    fleet = builders.fleet(workloads=(work(),))
    sizes = []
    for _ in range(3):
        _see(recorder)
        sizes.append(sum(file.stat().st_size for file in (tmp_path / "r").iterdir()))
    recorder.close()
    first, *_, last = recorded_frames.frames(recorded_frames.files(tmp_path / "r")[0])
    assert first == last
    assert (first.fleet, first.caps, first.faulty) == (fleet, Limits(), frozenset({"vast"}))
    assert sizes[2] - sizes[1] < sizes[0] / 10


def test_a_frame_keeps_the_rules_of_its_market_and_what_only_some_markets_say(tmp_path: Path) -> None:
    recorder = _recorder(tmp_path / "r")
    rules = MarketRules(
        places=Places.POOLS, price_paid=PricePaid.SECOND_PRICE, auction_every=2 * MINUTE, notice=5 * MINUTE
    )
    offer = builders.offer(floor=None, is_price_unknown=True, price_paid=per_hour("0.03"))
    row = builders.instance(limit=per_hour("2.50"), notice_at=builders.NOW)
    seen = builders.view(rules=rules, offers=(offer,), instances=(row,))
    _see(recorder, markets={"vast": seen})
    recorder.close()
    (one,) = recorded_frames.frames(recorded_frames.files(tmp_path / "r")[0])
    assert one.fleet.markets["vast"] == seen
    assert one.fleet.rules_of("vast") == rules
    assert one.fleet.rules_of("elsewhere") == ASSUMED


def test_the_first_plan_that_comes_out_otherwise_is_told(tmp_path: Path) -> None:
    recorder = _recorder(tmp_path / "r")
    _see(recorder)
    recorder.close()
    (one,) = recorded_frames.frames(recorded_frames.files(tmp_path / "r")[0])
    dearer = replace(
        one, fleet=msgspec.structs.replace(one.fleet, workloads=(work(max_price=per_hour("0.01")), work("more")))
    )
    count, difference = recorded_frames.verify([one, dearer], REGISTRY)
    assert count == 2
    assert difference is not None
    assert len(difference.made) == len(difference.recorded) + 1


def test_a_recording_that_a_crash_cut_short_is_read_up_to_there(tmp_path: Path) -> None:
    recorder = _recorder(tmp_path / "r")
    for _ in range(3):
        _see(recorder)
    recorder.close()
    (file,) = recorded_frames.files(tmp_path / "r")
    file.write_bytes(file.read_bytes()[:-3])
    assert len(list(recorded_frames.frames(file))) == 2


@pytest.mark.parametrize("content", [b"", b"something else", plan_recording.MAGIC + b"\0\0\0\2ab"])
def test_what_is_no_recording_is_refused_with_its_name(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "other.frames"
    file.write_bytes(content)
    with pytest.raises(RecordingError, match=r"other\.frames"):
        list(recorded_frames.frames(file))


def test_the_verb_tells_what_came_out_otherwise_and_what_is_no_recording(tmp_path: Path) -> None:
    recorder = _recorder(tmp_path / "r")
    _see(recorder)
    recorder.close()
    run = CliRunner().invoke
    told = run(app, ["lab", "verify", str(tmp_path / "r"), "--json"])
    assert (told.exit_code, json.loads(told.stdout)["plans"]) == (0, 1)
    other = plan.plan(builders.fleet(workloads=()), {}, Limits())
    recorder = _recorder(tmp_path / "more")
    recorder.see(builders.fleet(workloads=(work(),)), strategies(), Limits(), frozenset(), other)
    recorder.close()
    told = run(app, ["lab", "verify", str(tmp_path / "more")])
    assert told.exit_code == 1
    assert "plan 1" in told.stdout
    missing = run(app, ["lab", "verify", str(tmp_path / "none")])
    assert missing.exit_code == 2
    assert "record = true" in missing.stderr


def test_a_folder_without_recordings_and_a_strategy_that_is_not_installed_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="record = true"):
        recorded_frames.files(tmp_path)
    recorder = _recorder(tmp_path / "r")
    _see(recorder)
    recorder.close()
    with pytest.raises(RecordingError, match="not installed"):
        recorded_frames.verify(recorded_frames.frames(recorded_frames.files(tmp_path / "r")[0]), {})


def test_the_files_stay_within_their_room_and_the_newest_are_kept(tmp_path: Path) -> None:
    most = 20_000
    recorder = _recorder(tmp_path / "r", most)
    for minute in range(200):
        _see(recorder, now=builders.NOW + minute * MINUTE)
    recorder.close()
    files = recorded_frames.files(tmp_path / "r")
    assert len(files) > 1
    assert sum(file.stat().st_size for file in files) <= most
    *_, last = recorded_frames.frames(files[-1])
    assert last.fleet.now == builders.NOW + 199 * MINUTE


def test_what_cannot_be_written_ends_the_recording_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("a file where the folder should be")
    recorder = _recorder(tmp_path / "r")
    _see(recorder)
    _see(recorder)
    assert (tmp_path / "r").read_text() == "a file where the folder should be"


def test_a_figure_that_does_not_fit_ends_the_recording_and_nothing_else(tmp_path: Path) -> None:
    """A foreign strategy may put anything into a reason; that must not prevent its decisions."""
    recorder, fleet = _recorder(tmp_path / "r"), builders.fleet(workloads=(work(),))
    made = plan.plan(fleet, strategies(), Limits())
    huge = replace(made.decisions[0], reason=Reason("because", "because", (Option("much", 2**70),)))
    recorder.see(fleet, strategies(), Limits(), frozenset(), replace(made, decisions=(huge,)))
    _see(recorder)
    assert not list((tmp_path / "r").glob("*.frames"))


@pytest.mark.nightly
def test_another_process_makes_the_same_bytes(tmp_path: Path) -> None:
    """Sets and hashes have another order in each process; answers may not show it."""
    held = [builders.lease(number, slot=builders.slot(index=number)) for number in range(4)]
    recorder = _recorder(tmp_path / "r")
    _see(recorder, leases=tuple(held))
    recorder.close()
    for seed in ("1", "2", "3"):
        command = [sys.executable, "-m", "agent", "lab", "verify", str(tmp_path / "r")]
        done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout
