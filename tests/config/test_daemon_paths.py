"""Where the ledger lies is found in a broken file too: `gpubid kill` must reach the daemon that runs on."""

from pathlib import Path

import pytest

from agent.config import daemon_paths


@pytest.mark.parametrize(
    ("text", "ledger"),
    [
        ('[ledger]\npath = "mine.sqlite"\n[limits\nbroken', "mine.sqlite"),
        ("[ledger]\n# path = \"no\"\n  path='mine.sqlite' # here\n", "mine.sqlite"),
        ('[other]\npath = "not this"\n[ledger]\n', "gpubid.sqlite"),
        ('ledger.path = "mine.sqlite"\n[limits\nbroken', "mine.sqlite"),
        ('ledger = { path = "mine.sqlite" }\n[limits\nbroken', "mine.sqlite"),
        ('"ledger" = { keep = 1, "path" = \'mine.sqlite\' } # here\n[limits\nbroken', "mine.sqlite"),
        ('ledger = { path = "mine.sqlite"\n[limits]', "mine.sqlite"),
        ('["ledger"]\n"path" = "mine.sqlite"\n[limits\nbroken', "mine.sqlite"),
        ('ledger = { path = """mine.sqlite""" }\n[limits]\nmax_per_day = -1', "mine.sqlite"),
        ('[other]\nledger.path = "not this"\n[limits\nbroken', "gpubid.sqlite"),
        ('# ledger.path = "not this"\n[limits\nbroken', "gpubid.sqlite"),
        ('[ledger]\n[other]\npath = "not this"\n', "gpubid.sqlite"),
        ("nothing at all", "gpubid.sqlite"),
        ("\x00\xff", "gpubid.sqlite"),
    ],
)
def test_the_path_is_read_as_far_as_the_text_tells(tmp_path: Path, text: str, ledger: str) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(text, "latin-1")
    assert daemon_paths.of_file(file, {}).ledger == Path(ledger)
    assert daemon_paths.of_file(file, {"STATE_DIRECTORY": "/s", "RUNTIME_DIRECTORY": "/r"}) == daemon_paths.DaemonPaths(
        Path("/s") / ledger, Path("/r")
    )


@pytest.mark.parametrize(
    "line",
    [
        "ledger.path = mine.sqlite",
        'ledger = { path = """mine.sqlite""" }',
        'ledger = "mine.sqlite"',
        '[ledger]\npath = "\\u006dine.sqlite"',
    ],
)
def test_a_ledger_that_is_not_understood_is_no_proof_that_no_daemon_runs(tmp_path: Path, line: str) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(f"{line}\n[limits\nbroken")
    place = daemon_paths.of_file(file, {})
    assert (place.ledger, place.is_unclear) == (Path("gpubid.sqlite"), True)
    assert "a daemon may run on that one" in place.no_daemon()


@pytest.mark.parametrize("line", ["", "[ledger]", "ledger = { keep = 1 }", 'ledger.path = "mine.sqlite"'])
def test_a_ledger_that_is_understood_or_not_named_is_clear(tmp_path: Path, line: str) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(f"{line}\n[limits\nbroken")
    assert daemon_paths.of_file(file, {}).no_daemon() == "no daemon runs"


@pytest.mark.parametrize(
    ("text", "is_on_server"),
    [
        ('[ledger]\nurl = "postgresql://gpubid@db/gpubid"\n[limits\nbroken', True),
        ('[ ledger ] # here\n"url" = "postgresql://gpubid@db/gpubid"\n[limits\nbroken', True),
        ('ledger.url = "postgresql://gpubid@db/gpubid"\n[limits\nbroken', True),
        ('ledger = { path = "mine", url = "postgresql://gpubid@db/gpubid" }\n[limits\nbroken', True),
        ('[ledger]\n# url = "postgresql://gpubid@db/gpubid"\n[limits\nbroken', False),
        ('ledger = { path = "mine" } # or url = ...\n[limits\nbroken', False),
        ('[ledger]\n[markets.vast]\nurl = "http://127.0.0.1:1"\n[limits\nbroken', False),
    ],
)
def test_a_ledger_on_a_server_is_seen_in_a_broken_file(tmp_path: Path, text: str, is_on_server: bool) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(text)
    assert daemon_paths.of_file(file, {}).is_on_server == is_on_server


def test_a_file_that_is_gone_is_no_reason_to_fail(tmp_path: Path) -> None:
    assert daemon_paths.of_file(tmp_path / "gone.toml", {}).ledger == Path("gpubid.sqlite")
