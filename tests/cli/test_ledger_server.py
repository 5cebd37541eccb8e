"""The verbs over a ledger on a real server: move, verify, doctor, refusals, and a dry cycle."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests.support import engines, postgres
from tests.support.engines import database
from tests.support.programs import Ran, gpubid

__all__ = ["database"]

pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")
SHIPPED = (Path(__file__).parents[2] / "agent.toml").read_text()


@pytest.mark.long(15)
async def test_a_ledger_is_moved_and_used_from_there(database: str, tmp_path: Path) -> None:
    config = tmp_path / "agent.toml"
    config.write_text(SHIPPED.replace('path = "gpubid.sqlite"', 'path = "rehearsal.sqlite"'))
    made = await gpubid(tmp_path, "rehearse", "--hours", "1", "--keep-ledger", str(tmp_path))
    assert made.code == 0, made
    # Nothing goes on from the ledger of a rehearsal.
    with contextlib.closing(sqlite3.connect(tmp_path / "rehearsal.sqlite")) as link, link:
        assert link.execute("DELETE FROM meta WHERE key = 'rehearsed_until'").rowcount == 1
    url = database.replace(f":{postgres.PASSWORD}", "")
    (tmp_path / "word").write_text(postgres.PASSWORD)
    where = ("--schema-name", engines.schema(tmp_path), "--credential-file", str(tmp_path / "word"))
    before = (await gpubid(tmp_path, "ledger", "events", "--json")).json

    await _refuses_a_password_in_the_address_and_none(tmp_path, database, url, *where[:2])
    moved = await gpubid(tmp_path, "ledger", "move", "--to", url, *where)
    assert moved.code == 0, moved
    assert "rows, sums and digests are the same" in moved.out
    _is_told_which_keys_to_write(tmp_path, url, moved)
    await _is_told_that_nobody_may_open_it(tmp_path)
    await _ends_nothing_by_label(tmp_path)
    old = await gpubid(tmp_path, "ledger", "events")
    assert (old.code, "was moved to" in old.err) == (1, True), old

    keys = f'path = "rehearsal.sqlite"\nurl = "{url}"\nschema_name = "{engines.schema(tmp_path)}"\n'
    config.write_text(SHIPPED.replace('path = "gpubid.sqlite"\n', keys + 'credential_file = "word"\n'))
    assert (await gpubid(tmp_path, "ledger", "events", "--json")).json == before
    checked = await gpubid(tmp_path, "ledger", "verify")
    assert (checked.code, "sound" in checked.out) == (0, True), checked
    planned = await gpubid(tmp_path, "plan")
    assert planned.code == 0, planned
    for verb in (("backup", "copy.sqlite"), ("restore", "copy.sqlite")):
        own = await gpubid(tmp_path, "ledger", *verb)
        assert own.code == 1
        assert "pg_dump" in own.err
    told = await gpubid(tmp_path, "doctor")
    for part in (
        "a round trip takes",
        "is no superuser",
        "within 11 s",
        "statements stay in one session",
        "nobody leads",
        "are sound",
    ):
        assert part in " ".join(told.out.split()), told
    assert "fsync or full_page_writes is off" in " ".join(told.out.split()), "the tests' server has no fsync"
    await _is_told_the_whole_path_on_the_way_back(tmp_path, config)
    assert postgres.PASSWORD not in "".join(each.out + each.err for each in (moved, old, checked, planned, told))


async def _refuses_a_password_in_the_address_and_none(place: Path, database: str, url: str, *where: str) -> None:
    refused = await gpubid(place, "ledger", "move", "--to", database, *where, "--credential-file", str(place / "word"))
    assert (refused.code, postgres.PASSWORD in refused.err) == (2, False)
    unnamed = await gpubid(place, "ledger", "move", "--to", url, *where)
    assert (unnamed.code, "cannot be reached" in unnamed.err) == (1, True)
    assert "no password was given: --credential NAME or --credential-file FILE" in unnamed.err


async def _ends_nothing_by_label(place: Path) -> None:
    """A box that still has the old file ended what the leader rents again."""
    killed = await gpubid(place, "kill", "--yes")
    assert (killed.code, "because another box may lead" in killed.err) == (1, True), killed


def _is_told_which_keys_to_write(place: Path, url: str, moved: Ran) -> None:
    """A person who copies the lines has a whole [ledger]."""
    file, schema = f'credential_file = "{place / "word"}"', f'schema_name = "{engines.schema(place)}"'
    assert [line.strip() for line in moved.out.splitlines()[-3:]] == [f'url = "{url}"', file, schema]


async def _is_told_the_whole_path_on_the_way_back(place: Path, config: Path) -> None:
    """The daemon's own folder is not that of the shell."""
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    back = await gpubid(elsewhere, "ledger", "move", "--config", str(config), "--to", "back.sqlite")
    assert back.code == 0, back
    assert f'now write path = "{elsewhere / "back.sqlite"}" and remove url' in back.out


async def _is_told_that_nobody_may_open_it(place: Path) -> None:
    told = await gpubid(place, "doctor", "--json")
    (ledger,) = (line for line in told.json["lines"] if line["name"] == "ledger")
    assert (ledger["verdict"], "was moved to" in ledger["sentence"]) == ("fail", True), ledger
    assert "gpubid ledger move" in ledger["fix"]
    checked = await gpubid(place, "ledger", "verify")
    lines = " ".join(checked.out.split())
    assert (checked.code, "moved: " in lines, "was moved to" in lines) == (1, True, True), checked
    assert lines.endswith("its rows are sound")


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (("",), "--to: is empty: name a file"),
        ((".",), "--to: . is a folder: name a file in it, or postgresql://USER@HOST/DATABASE"),
        (("FOLDER",), "is a folder: name a file in it"),
        (("copy.sqlite", "--credential", "ledger_password"), "belong to a server, and --to names a file"),
    ],
)
async def test_a_target_that_is_no_file_is_bad_input_and_leaves_nothing(
    tmp_path: Path, place: tuple[str, ...], told: str
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "agent.toml").write_text(SHIPPED)
    (tmp_path / "there").mkdir()
    before = set(tmp_path.glob("*"))  # noqa: ASYNC240 - a test may wait for its own files
    words = [str(tmp_path / "there") if word == "FOLDER" else word for word in place]
    ran = await gpubid(tmp_path / "here", "ledger", "move", "--to", *words)
    assert (ran.code, told in ran.err) == (2, True), ran
    assert set(tmp_path.glob("*")) == before, "a lock beside a folder"  # noqa: ASYNC240
