"""Wrong input of every kind: a sentence on standard error, the right exit code, nothing done and no traceback."""

from pathlib import Path

import pytest
from typer import main

from agent.cli.main import app
from agent.cli.shared import verb_hints
from agent.cli.watch import ledger
from tests.support.configs import GOOD, added
from tests.support.programs import LIVE, gpubid

# verb and arguments, exit code, a part of the message
BAD: list[tuple[str, int, str]] = [
    ("fleet", 1, "there is no ledger at ledger.sqlite: start the daemon once"),
    ("ledger events", 1, "there is no ledger at ledger.sqlite"),
    ("ledger prices", 1, "there is no ledger at ledger.sqlite"),
    ("ledger verify", 1, "there is no ledger at ledger.sqlite"),
    ("ledger unbind vast", 1, "there is no ledger at ledger.sqlite: nothing is bound"),
    ("ledger mark-restored", 1, "there is no ledger at ledger.sqlite: nothing is marked"),
    ("ledger backup copy", 1, "there is no ledger at ledger.sqlite"),
    ("ledger backup agent.toml", 2, "agent.toml exists; name a new file"),
    ("ledger export --to x", 1, "there is no ledger at ledger.sqlite"),
    ("ledger export --to x --table lease", 2, "--table: no table 'lease'; did you mean leases?"),
    ("ledger move --to other.sqlite", 1, "there is no ledger at ledger.sqlite"),
    ("ledger move --to postgresql://ops:secret@db/gpubid", 2, "--to: contains a password; take it out"),
    ("ledger move --to ledger.sqlite", 2, "--to: ledger.sqlite is the present ledger; name another file or a server"),
    ("replay agent.toml --strategy patient", 2, "agent.toml is no ledger: name the SQLite file of a daemon, a backup"),
    ("replay no.sqlite --strategy patient", 2, "no.sqlite cannot be read (No such file or directory): name the SQLite"),
    ("ledger restore nothing.sqlite", 2, "no file nothing.sqlite; name a copy that `gpubid ledger backup` wrote"),
    ("ledger events --since tomorrow", 2, "--since: 'tomorrow' is not an ISO date such as"),
    ("ledger events --since 2026-13-01", 2, "is not an ISO date"),
    ("spend --since 2026-11-05 --until 2026-11-01", 2, "--until: 2026-11-01 is before --since, 2026-11-05; exchange"),
    ("ledger events --limit 0", 2, "--limit"),
    ("ledger prices --limit many", 2, "--limit"),
    ("strategy show nope", 2, "there is no strategy 'nope'; known: deadline, hedged, ondemand, patient"),
    ("strategy show own", 2, "write the path of an own file, such as strategies/bold.toml, or name its folder in"),
    ("strategy diff patient nope", 2, "there is no strategy 'nope'"),
    ("explain nope", 2, "there is no workload 'nope'; known: train"),
    ("explain train/9", 2, "workload 'train' has no slot 'train/9'; write train/0, or train for all"),
    (
        "plan",
        1,
        "no market could be read; `gpubid doctor` checks each gpubid: vast: GET /api/v1/instances/: no connection",
    ),
    ("rehearse --climate nope", 2, "--climate: there is no climate 'nope'; known: bidding_war, bids_end, blackout"),
    ("rehearse --strategy nope", 2, "--strategy: there is no strategy 'nope'"),
    ("rehearse --hours -1", 2, "--hours"),
    ("rehearse --hours nan", 2, "--hours"),
    ("rehearse --hosts 0", 2, "--hosts"),
    ("rehearse --seed x", 2, "--seed"),
    ("rehearse --keep-ledger agent.toml", 2, "--keep-ledger: agent.toml cannot be made (File exists)"),
    ("simulate --climate nope", 2, "gpubid: --climate: there is no climate 'nope'; known: bidding_war"),
    ("simulate --start x", 2, "--start: 'x' is not an ISO date"),
    ("simulate --speed -1", 2, "--speed"),
    ("simulate --speed inf", 2, "--speed: inf is not a finite number"),
    ("simulate --credit nan", 2, "--credit: nan is not a finite number"),
    ("simulate --vast-port 70000", 2, "--vast-port"),
    ("simulate --rate-limits none", 2, "neither lenient nor published"),
    ("kill --lift --keep-disks", 2, "give one of them"),
    ("progress train nan", 2, "HOURS: must be a finite number from 0, such as 1.5"),
    ("progress train inf", 2, "HOURS: must be a finite number from 0, such as 1.5"),
    ("release", 2, "Missing argument"),
    ("check --config none.toml", 2, "none.toml: there is no such file"),
    ("check --nope", 2, "No such option"),
    ("nope", 2, "No such command"),
    ("why train", 2, "there is no verb 'why'; did you mean `gpubid explain`?"),
    ("check agent.toml", 2, "the configuration file is an option; write `gpubid check --config agent.toml`"),
    ("plan --json other.toml", 2, "write `gpubid plan --json --config other.toml`"),
    ("explain train/0 agent.toml", 2, "write `gpubid explain train/0 --config agent.toml`"),
    ("explain agent.toml", 2, "the configuration file is an option; write `gpubid explain --config agent.toml`"),
    ("logs ./other.toml", 2, "write `gpubid logs TARGET --config ./other.toml`"),
    ("release --yes agent.toml", 2, "write `gpubid release TARGET --yes --config agent.toml`"),
    ("release vast-1 agent.toml", 2, "write `gpubid release vast-1 --config agent.toml`"),
    ("explain agent.toml -c agent.toml", 2, "there is no workload 'agent.toml'; known: train"),
    ("ledger events agent.toml", 2, "write `gpubid ledger events --config agent.toml`"),
    ("fleet train/0", 2, "Got unexpected extra argument (train/0)"),
    ("check -c agent.toml other.toml", 2, "Got unexpected extra argument (other.toml)"),
    ("simulate agent.toml", 2, "Got unexpected extra argument (agent.toml)"),
    ("events", 2, "there is no verb 'events'; did you mean `gpubid ledger events`?"),
]


@pytest.mark.parametrize(("arguments", "code", "part"), BAD, ids=[row[0] for row in BAD])
async def test_wrong_input(tmp_path: Path, arguments: str, code: int, part: str) -> None:
    (tmp_path / "agent.toml").write_text(LIVE.format(url="http://127.0.0.1:1"))
    ran = await gpubid(tmp_path, *arguments.split())
    assert part in ran.err.replace("\n", " ")
    assert ran.code == code, ran
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert names(tmp_path) == ["agent.toml"], "something was made"


@pytest.mark.parametrize("arguments", ["register https://example.com/webhooks/vast --secret-file secret", "test"])
async def test_a_webhook_without_its_key_is_a_sentence_and_leaves_no_file(tmp_path: Path, arguments: str) -> None:
    text = LIVE.format(url="http://127.0.0.1:1").replace("[web]", '[web]\nwebhook_credential = "hook_secret"')
    (tmp_path / "agent.toml").write_text(text)
    ran = await gpubid(tmp_path, "webhook", *arguments.split(), VAST_API_KEY=None)
    assert (ran.code, ran.out, names(tmp_path)) == (2, "", ["agent.toml"]), ran
    missing = "hook_secret" if arguments == "test" else "vast_api_key"
    assert ran.err.startswith(f"gpubid: there is no key named {missing}; ")


def test_a_hint_is_given_for_no_verb_and_names_one() -> None:
    verbs = main.get_command(app).commands  # type: ignore[attr-defined]
    assert not verb_hints.HINTS.keys() & verbs.keys()
    assert {hint.split()[0] for hint in verb_hints.HINTS.values()} <= verbs.keys()


def names(place: Path) -> list[str]:
    return [file.name for file in place.iterdir()]


READERS = (
    "run",
    "rehearse",
    "check",
    "plan",
    "explain",
    "fleet",
    "ledger verify",
    "strategy list",
    "release x",
    "kill",
)
KILL_WITHOUT_IT = (
    "gpubid: no daemon runs, so nothing was ended; to end by label without it: "
    "gpubid kill --market NAME --credential NAME_OR_FILE [--fleet ID]"
)
"""What `kill` says besides: a broken file is no reason to go on paying."""


@pytest.mark.parametrize("verb", READERS)
async def test_every_verb_names_each_mistake_in_a_broken_file_and_ends_with_2(tmp_path: Path, verb: str) -> None:
    (tmp_path / "agent.toml").write_text(added("slots = -1", "max_prise = 1"))
    ran = await gpubid(tmp_path, *verb.split())
    assert ran.code == 2
    assert ran.out == ""
    way_on = [KILL_WITHOUT_IT] if verb == "kill" else []
    assert ran.err.splitlines() == [
        "gpubid: agent.toml:15: workloads.train.slots: must be at least 0, not -1; write for example slots = 3",
        "gpubid: agent.toml:16: workloads.train.max_prise: is not a key here; did you mean max_price?",
        *way_on,
    ]
    assert names(tmp_path) == ["agent.toml"], "something was made"


@pytest.mark.parametrize(("verb", "code"), [("kill", 2), ("reload", 1)])
async def test_a_ledger_that_cannot_be_read_is_not_taken_for_one_without_a_daemon(
    tmp_path: Path, verb: str, code: int
) -> None:
    (tmp_path / "agent.toml").write_text("ledger.path = other.sqlite\n" + GOOD)
    ran = await gpubid(tmp_path, verb)
    assert ran.code == code
    assert "the file names another in a way that cannot be read" in ran.err
    assert "no daemon runs" not in ran.err


async def test_the_configuration_is_found_by_the_environment_too(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(GOOD)
    assert (await gpubid(tmp_path, "check", GPUBID_CONFIG="other.toml")).out.startswith("other.toml: good, digest ")


def test_the_table_of_wrong_input_knows_every_verb_of_the_ledger() -> None:
    commands = [command for command in ledger.app.registered_commands if command.callback]
    verbs = {command.name or getattr(command.callback, "__name__", "") for command in commands}
    assert verbs == {row[0].split(" ")[1] for row in BAD if row[0].startswith("ledger ")}
