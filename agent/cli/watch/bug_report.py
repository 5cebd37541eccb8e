"""`gpubid bug-report`: one file for a bug report, without secrets."""

import asyncio
import io
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.setup import doctor, doctor_checks
from agent.cli.shared import exits, ledger_access, session
from agent.config.files import layers

if TYPE_CHECKING:
    from agent.config.settings import Config

MOST_EVENTS = 2000
MOST_LINES = 5000
LONGEST_LINE = 4000
_ASSIGNED = re.compile(r"^(\s*[\w.\"'-]+\s*=\s*).*$")
_SECRET_TABLES = re.compile(r"^\s*\[.*(\benv\b|env_from|image_login|notify).*\]")
_SECRET_KEYS = re.compile(r"(?i)(key|token|secret|password|onstart|command|template|url)")
_TABLE = re.compile(r"^\s*\[")

To = Annotated[Path, typer.Argument(help="The file to write; it must not exist.")]


def bug_report(to: To = Path("gpubid-report.tar.gz"), config: session.ConfigOption = session.DEFAULT_CONFIG) -> None:
    """Write an archive for a bug report: configuration, health, events, metrics and log, without secrets."""
    exits.must_be_new(to)
    session.log_quietly()
    with session.waiting("gathering"):
        parts = dict(gathered(config))
    try:
        with to.open("xb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            to.chmod(0o600)
            for name, text in parts.items():
                _put(archive, name, redacted(text))
    except OSError as error:
        to.unlink(missing_ok=True)
        exits.unwritable(to, error)
    session.say(f"{to}: {', '.join(parts)}")
    session.say("keys, variables, commands and addresses are removed; read the file before you send it")


def gathered(config: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each part. The text of an unavailable part is the reason."""
    yield "doctor.json", json.dumps(doctor.as_document(doctor.look(config)), indent=2)
    for number, file in enumerate(layers.files(config)):
        yield (f"included/{number}-{file.name}" if number else "agent.toml"), _configuration(file)
    settings = _settings(config)
    if settings is not None:
        _know_secrets(settings)
        yield from _of_daemon(settings)
    yield "log.txt", asyncio.run(_journal())


def redacted(text: str) -> str:
    """Return the text without the program's secrets and without words that look like secrets, line by line."""
    return "\n".join(session.REDACTOR.text(line, LONGEST_LINE) for line in text.splitlines()) + "\n"


def _configuration(config: Path) -> str:
    """Return the file without values that may be secret. Keys and tables stay."""
    try:
        lines = config.read_text("utf-8", "replace").splitlines()
    except OSError as error:
        return f"unreadable: {error.strerror}"
    kept, is_secret = [], False
    for line in lines:
        is_secret = bool(_SECRET_TABLES.search(line)) if _TABLE.match(line) else is_secret
        assigned = _ASSIGNED.match(line)
        hides = assigned is not None and (is_secret or _SECRET_KEYS.search(assigned[1]) is not None)
        kept.append(f"{assigned[1]}[redacted]" if assigned is not None and hides else line)
    return "\n".join(_without_blocks(kept))


def _without_blocks(lines: list[str]) -> Iterator[str]:
    """Yield the lines without multi-line texts and inline tables, which may contain secrets."""
    closing = ""
    for line in lines:
        if closing:
            closing = "" if closing in line else closing
            continue
        for quote in ('"""', "'''"):
            closing = quote if line.count(quote) % 2 else closing
        yield re.sub(r"\{.*", "{ [redacted] }", line) if "{" in line and not line.lstrip().startswith("#") else line


def _settings(config: Path) -> "Config | None":
    from agent.config.problems import ConfigError
    from agent.simulator import climate_files

    try:
        return session.parse(config, climate_files.names())[0]
    except ConfigError:
        return None


def _know_secrets(config: "Config") -> None:
    """Register every value that may be secret with the redactor."""
    from agent.systemd import CredentialError

    names = [name for work in config.workloads for name in work.credentials] + list(config.notify.credentials)
    for market in config.markets:
        try:
            session.secret(market)
        except CredentialError:
            continue
    for name in names:
        try:
            session.named(name)
        except CredentialError:
            continue
    for work in config.workloads:
        for value in (
            *(text for _, text in work.environment),
            *(each for _, several in work.values for each in several),
        ):
            session.REDACTOR.register(value)


def _of_daemon(config: "Config") -> Iterator[tuple[str, str]]:
    yield "metrics.txt", asyncio.run(_metrics(config))
    if not ledger_access.may_read(config):
        yield "events.json", "this user may not read the ledger: run this as root"
        return
    yield "events.json", asyncio.run(_events(config))


async def _metrics(config: "Config") -> str:
    try:
        return await doctor_checks.page(f"{doctor_checks.address(config)}/metrics")
    except (OSError, TimeoutError) as error:
        return f"nobody serves metrics ({type(error).__name__})"


async def _events(config: "Config") -> str:
    from agent.ledger.ledger_errors import LedgerError
    from agent.ledger.reader import open_reader
    from agent.systemd import CredentialError
    from agent.web.reading import verb_json

    try:
        reader = await open_reader(ledger_access.place_of(config))
        try:
            return json.dumps(verb_json.events(await reader.events(limit=MOST_EVENTS)), indent=1)
        finally:
            await reader.close()
    except LedgerError as error:
        return error.sentence
    except CredentialError as error:
        return str(error)


async def _journal() -> str:
    order = ("journalctl", "--no-pager", "--output", "cat", "--unit", "gpubid.service", "--lines", str(MOST_LINES))
    return await doctor_checks.run(*order) or "no journal of gpubid.service can be read here"


def _put(archive: tarfile.TarFile, name: str, text: str) -> None:
    content = text.encode("utf-8", "replace")
    member = tarfile.TarInfo(f"gpubid-report/{name}")
    member.size, member.mode = len(content), 0o600
    archive.addfile(member, io.BytesIO(content))
