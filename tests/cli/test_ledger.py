"""The verbs that read a ledger of a rehearsed day: text a person reads, filters, backup, and damage that is found."""

import asyncio
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.configs import GOOD
from tests.support.once import made_once
from tests.support.programs import gpubid

LEDGER = "kept/rehearsal.sqlite"
SHIPPED = (Path(__file__).parents[2] / "agent.toml").read_text()
CONFIG = SHIPPED.replace("gpubid.sqlite", LEDGER).replace('poll = "15s"', 'poll = "60s"')


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def rehearse(place: Path) -> None:
        (place / "agent.toml").write_text(CONFIG)
        words = ("rehearse", "--climate", "bidding_war", "--hours", "10", "--keep-ledger", "kept")
        ran = asyncio.run(gpubid(place, *words))
        assert ran.code == 0, ran

    return made_once(tmp_path_factory, "rehearsed", rehearse)


@pytest.fixture
def place(rehearsed: Path, tmp_path: Path) -> Path:
    """Return a copy that a test may spoil."""
    shutil.copytree(rehearsed, tmp_path, dirs_exist_ok=True)
    return tmp_path


def spoil(place: Path, statement: str) -> None:
    with sqlite3.connect(place / LEDGER) as link:
        assert link.execute(statement).rowcount > 0
    link.close()


async def test_times_of_another_year_have_their_year(place: Path) -> None:
    # Three years in microseconds.
    for statement in ("UPDATE events SET at = at - 94608000000000", "UPDATE prices SET at = at - 94608000000000"):
        spoil(place, statement)
        ran = await gpubid(place, "ledger", statement.split()[1])
        times = [line[:19] for line in ran.out.splitlines()[1:] if line[:2] == "20"]
        assert times, ran
        assert all(time.startswith("2023-07-2") for time in times)


async def test_events_tell_each_interruption_with_its_cause_and_evidence(rehearsed: Path) -> None:
    asked = ("ledger", "events", "--kind", "lease.interrupted")
    text, found = await gpubid(rehearsed, *asked), (await gpubid(rehearsed, *asked, "--json")).json
    assert found
    assert all(event["kind"] == "lease.interrupted" and event["cause"] and event["evidence"] for event in found)
    assert text.code == 0
    assert text.out.splitlines()[0].split() == [
        "at",
        "slot",
        "what",
        "host",
        "cause",
        "price",
        "money",
        "evidence",
        "or",
        "reason",
    ]
    assert all(event["cause"] in text.out and event["host_id"] in text.out for event in found)


async def test_events_are_narrowed_by_workload_instant_and_number(rehearsed: Path) -> None:
    everything = (await gpubid(rehearsed, "ledger", "events", "--json", "--limit", "100000")).json
    middle = everything[len(everything) // 2]["at"]
    later = (await gpubid(rehearsed, "ledger", "events", "--json", "--limit", "100000", "--since", middle)).json
    assert later == [event for event in everything if event["at"] >= middle]
    assert (await gpubid(rehearsed, "ledger", "events", "--json", "--limit", "3")).json == everything[:3]
    nobody = await gpubid(rehearsed, "ledger", "events", "--json", "--workload", "nobody")
    assert (nobody.code, nobody.out) == (2, "")
    assert "there is no workload 'nobody'; known: train" in nobody.err


@pytest.mark.nightly
async def test_prices_of_a_model_in_any_spelling_and_of_a_host(rehearsed: Path) -> None:
    found = (await gpubid(rehearsed, "ledger", "prices", "--json")).json
    model, host = found[0]["gpu"], found[0]["host_id"]
    spelt = model.lower().replace(" ", "_")
    same = (await gpubid(rehearsed, "ledger", "prices", "--json", "--gpu", spelt, "--host", host)).json
    assert same
    assert {(row["gpu"], row["host_id"]) for row in same} == {(model, host)}
    assert model in (await gpubid(rehearsed, "ledger", "prices", "--gpu", spelt)).out
    card = next(name for name in ("B300", "TITAN RTX") if name not in {row["gpu"] for row in found})
    assert (await gpubid(rehearsed, "ledger", "prices", "--gpu", card)).code == 0, "a card without a price is no slip"
    for filters, says in (
        (("--gpu", "RTX 4O90"), '--gpu: gpubid knows no card "RTX 4O90"; did you mean RTX 4090?'),
        (("--host", "nobody"), "--host: no price of a host 'nobody' is recorded"),
    ):
        ran = await gpubid(rehearsed, "ledger", "prices", *filters)
        assert (ran.code, ran.out) == (2, "")
        assert says in ran.err


async def test_fleet_shows_slots_leases_and_money(rehearsed: Path) -> None:
    shown = (await gpubid(rehearsed, "fleet", "--json")).json
    text = (await gpubid(rehearsed, "fleet")).out
    assert [slot["slot"] for slot in shown["slots"]] == ["train/0"]
    assert all(lease["lease"] in text for lease in shown["leases"])
    assert f"now ${shown['dollars_per_hour']:.4f} an hour" in text


async def test_a_backup_is_a_sound_ledger_and_never_takes_a_files_place(place: Path) -> None:
    ran = await gpubid(place, "ledger", "backup", "copy.sqlite")
    assert (ran.code, ran.out) == (0, f"{LEDGER} is backed up to copy.sqlite\n")
    (place / "agent.toml").write_text(CONFIG.replace(LEDGER, "copy.sqlite"))
    verified = await gpubid(place, "ledger", "verify", "--json")
    assert (verified.code, verified.json["is_sound"], verified.json["findings"]) == (0, True, [])
    again = await gpubid(place, "ledger", "backup", "copy.sqlite")
    assert again.code == 2
    assert "copy.sqlite exists" in again.err
    nowhere = await gpubid(place, "ledger", "backup", "none/copy.sqlite")
    assert nowhere.code == 2
    assert "name one in a folder that exists" in nowhere.err


@pytest.mark.parametrize("verb", [("ledger", "backup"), ("bug-report",), ("guard", "build", "--to")])
@pytest.mark.parametrize("path", ["none/new", "agent.toml/new", "n" * 300])
async def test_a_path_that_cannot_be_made_is_bad_input(place: Path, verb: Sequence[str], path: str) -> None:
    ran = await gpubid(place, *verb, path)
    assert ran.code == 2, ran
    (sentence,) = ran.err.splitlines()
    assert sentence.endswith("name one in a folder that exists and that you may write to")


async def test_damage_between_rows_ends_with_3(place: Path) -> None:
    spoil(place, "UPDATE leases SET ended_at = opened_at - 1 WHERE ended_at IS NOT NULL")
    ran = await gpubid(place, "ledger", "verify", "--json")
    assert ran.code == 3
    assert ran.json["is_sound"] is False
    assert ran.json["findings"]
    assert all(isinstance(finding, str) for finding in ran.json["findings"])
    text = await gpubid(place, "ledger", "verify")
    assert text.code == 3
    assert "wrong: lease ended before it opened: " in text.out
    assert "restore the newest backup" in text.out


async def test_sums_that_contradict_in_a_whole_ledger_end_with_1(place: Path) -> None:
    spoil(place, "UPDATE leases SET accrued_until = opened_at - 1")
    ran = await gpubid(place, "ledger", "verify", "--json")
    assert (ran.code, ran.json["is_sound"], ran.json["findings"]) == (1, False, [])
    assert ran.json["inconsistencies"]
    assert all(isinstance(finding, str) for finding in ran.json["inconsistencies"])
    text = await gpubid(place, "ledger", "verify")
    assert text.code == 1
    assert "inconsistent: lease accrued before it opened: " in text.out
    assert "keep this ledger" in text.out
    assert "restore" not in text.out


@pytest.mark.parametrize("verb", ["ledger events", "fleet", "explain", "plan", "kill", "run"])
async def test_a_file_that_is_no_ledger_ends_with_3_wherever_it_is_read(tmp_path: Path, verb: str) -> None:
    (tmp_path / "agent.toml").write_text(GOOD + '[ledger]\npath = "bad.sqlite"\n')
    (tmp_path / "bad.sqlite").write_bytes(b"this is no database, whatever its name says" * 100)
    ran = await gpubid(tmp_path, *verb.split())
    assert ran.code == 3, ran
    assert "restore the newest backup" in ran.err
    assert "Traceback" not in ran.err


async def test_a_file_that_is_no_ledger_is_found_damaged(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(GOOD + '[ledger]\npath = "bad.sqlite"\n')
    (tmp_path / "bad.sqlite").write_bytes(b"this is no database, whatever its name says" * 100)
    ran = await gpubid(tmp_path, "ledger", "verify", "--json")
    assert (ran.code, ran.json["is_sound"]) == (3, False)
    assert "restore the newest backup" in ran.json["findings"][0]


@pytest.mark.parametrize("verb", ["fleet", "ledger events", "explain", "run"])
async def test_a_ledger_of_a_later_release_is_bad_input(place: Path, verb: str) -> None:
    spoil(place, "UPDATE alembic_version SET version_num = '9999'")
    ran = await gpubid(place, *verb.split())
    assert ran.code == 2, ran
    assert f"gpubid: {LEDGER} has schema 9999, this gpubid knows 0" in ran.err


async def test_what_a_market_says_never_paints_the_terminal(place: Path) -> None:
    spoil(
        place, "UPDATE events SET evidence = char(27) || ']0;owned' || char(7) || char(155) || '2J[red]' || char(8238)"
    )
    for arguments in ((), ("--json",)):
        out = (await gpubid(place, "ledger", "events", *arguments)).out
        assert "owned" in out
        assert "[red]" in out, "taken for markup"
        assert all(character.isprintable() or character == "\n" for character in out)


async def test_a_rehearsal_never_takes_the_place_of_a_kept_one(rehearsed: Path) -> None:
    ran = await gpubid(rehearsed, "rehearse", "--hours", "1", "--keep-ledger", "kept")
    assert ran.code == 2
    assert "kept already contains a rehearsal; name another directory" in ran.err


async def test_strategies_are_shown_as_their_files_write_them(place: Path) -> None:
    shown = (await gpubid(place, "strategy", "show", "patient")).out
    assert 'lower_after = "45m"' in shown
    assert "may_raise = true" in shown
    assert "patient" in (await gpubid(place, "strategy", "list")).out
    (place / "mine").mkdir()
    (place / "mine" / "bold.toml").write_text('strategy = "patient"\nheadroom = 0.5\nlower_after = "1h"\n')
    own = CONFIG.replace('# directory = "strategies"', 'directory = "mine"')
    # No plan follows from the ledger of a rehearsal.
    (place / "agent.toml").write_text(own.replace(LEDGER, "new.sqlite"))
    differing = (await gpubid(place, "strategy", "diff", "patient", "bold")).out
    assert "headroom: 0.1 -> 0.5\n" in differing
    assert 'lower_after: "45m" -> "1h"\n2 number(s) differ\nplan with patient: ' in differing
    same = await gpubid(place, "strategy", "diff", "bold", "bold")
    assert same.out.startswith("the numbers are the same\n")


async def test_check_says_what_a_daemon_would_run_on(rehearsed: Path) -> None:
    ran = await gpubid(rehearsed, "check")
    assert ran.code == 0
    assert "market vast: simulated (calm), costs nothing" in ran.out
    assert "workload train: 1 slot(s) on patient (" in ran.out
