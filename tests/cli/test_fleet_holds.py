"""`gpubid fleet`: the lines of holds, cooldowns and counts, in words, with the command that ends each."""

import shlex
from datetime import timedelta
from typing import Any

import pytest

from agent.act.orders import order_grounds
from agent.cli.watch import fleet
from agent.decide.operators import hold_words
from agent.domain.record import hold
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.hold import DISKS, EVERYTHING, OperatorHold, Target, TargetKind, Word
from agent.domain.record.tally import Counted, Tally
from tests.support.builders import NOW

LATER = NOW + timedelta(minutes=1)

SAID = (
    (CooldownKind.OFFER, "123@7", "no rent of offer 123@7"),
    (CooldownKind.HOST, "vast/777", "no rent on host vast/777"),
    (CooldownKind.OWNER, "vast/12", "no rent on hosts of owner vast/12"),
    (CooldownKind.MARKET, "vast", "no rent on market vast"),
    (CooldownKind.SLOT, "train/0", "no rent for slot train/0"),
    (CooldownKind.COOL_OFF, "serve/0", "no other move of slot serve/0"),
    (CooldownKind.FULL, "vast-1", "no start of lease vast-1"),
    (CooldownKind.STORM, "vast/RTX 4090", "no interruptible rent of RTX 4090 on market vast"),
    (CooldownKind.STARTS, "vast/RTX 4090", "no rent of RTX 4090 on market vast"),
    (CooldownKind.REJECTED, "vast", "no rent on market vast"),
)


def row(kept: ExpiringRecord) -> dict[str, Any]:
    return {"what": str(kept), "until": kept.shown_until.isoformat(), "after": "a test"}


@pytest.mark.parametrize(("kind", "key", "meaning"), SAID, ids=[kind.value for kind, *_ in SAID])
def test_a_cooldown_says_what_it_forbids_until_when_why_and_what_ends_it(
    kind: CooldownKind, key: str, meaning: str
) -> None:
    kept = Cooldown(kind, key, LATER, "a test")
    until = f"{LATER:%Y-%m-%dT%H:%M:%S}Z"
    line = fleet.kept_back(row(kept), NOW.isoformat())
    assert line == f"cooldown until {until}: {meaning}, after a test; {hold_words.way_out(str(kept))}"
    (command,) = line.split("`")[1::2]
    assert shlex.split(command) == ["gpubid", "unlock", str(kept)]


def test_every_kind_of_cooldown_and_every_count_that_is_shown_has_words() -> None:
    assert {kind for kind, *_ in SAID} == set(CooldownKind)
    for counted in set(Counted) - order_grounds.MARKS:
        kept = Tally(counted, "vast@9", NOW, LATER, "a test", where="raise")
        line = fleet.kept_back(row(kept), NOW.isoformat())
        assert line.startswith("count until ")
        assert f"vast@9, after a test; `gpubid unlock {shlex.quote(str(kept))}` ends it sooner" in line


def test_a_kind_of_a_newer_daemon_is_shown_by_its_name() -> None:
    line = fleet.kept_back({"what": "frost:vast/7", "until": LATER.isoformat(), "after": "a test"}, NOW.isoformat())
    assert ": frost of vast/7, after a test; `gpubid unlock frost:vast/7`" in line


@pytest.mark.parametrize(
    ("word", "target", "said"),
    [
        (
            Word.LOCK,
            Target(TargetKind.HOST, "vast/77"),
            "lock of host vast/77, after a test; `gpubid unlock host:vast/77`",
        ),
        (Word.HELD, hold.of_workload("train"), "held of workload train, after a test; `gpubid resume train`"),
        (Word.KILL, EVERYTHING, "kill of everything, after a test; `gpubid kill --lift`"),
        (Word.KILL, DISKS, "kill that keeps disks, after a test; `gpubid kill --lift`"),
    ],
)
def test_a_hold_says_its_target_and_what_ends_it(word: Word, target: Target, said: str) -> None:
    line = fleet.kept_back(row(OperatorHold(word, target, NOW, "a test")), NOW.isoformat())
    assert line == f"hold until it is lifted: {said} ends it"


def test_a_done_task_of_an_array_has_no_line_since_the_line_of_the_array_counts_it() -> None:
    places = (Target(TargetKind.SLOT, "sweep/1"), Target(TargetKind.SLOT, "train/0"))
    kept = [OperatorHold(Word.DONE, place, NOW, "a line of its log") for place in places]
    held = [OperatorHold(Word.HELD, Target(TargetKind.SLOT, place), NOW, "a crash") for place in ("sweep/2", "train/0")]
    nothing = dict.fromkeys(("notices", "slots", "demands", "run_times", "services", "in_doubt"), ())
    arrays = [{"workload": "sweep", "sentence": "1/3 done"}]
    rows = [row(each) for each in (*kept, *held)]
    shown = {**nothing, "arrays": arrays, "now": NOW.isoformat(), "holds_and_cooldowns": rows}
    lines = "\n".join(fleet._sentences(shown))
    assert "done of slot train/0" in lines
    assert "held of slot sweep/2" in lines
    assert "held of slot train/0" not in lines
    assert "done of slot sweep/1" not in lines
