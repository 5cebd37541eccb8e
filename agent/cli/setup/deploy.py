"""`gpubid deploy show`: the files for the tools around the daemon, as shipped with this version."""

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agent.cli.shared import exits, session

PACKAGED = "/usr/bin/gpubid"
"""The command in the shipped units, of the Debian package."""
HIDDEN = (Path("/home"), Path("/root"), Path("/run/user"))
"""Folders that ProtectHome= hides from the service."""

app = typer.Typer(no_args_is_help=True, help="Show the files for systemd, Prometheus and Grafana.")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of files: its purpose, and its files below deploy/."""

    meaning: str
    patterns: tuple[str, ...]


KINDS: Mapping[str, Kind] = {
    "unit": Kind("systemd's service: /etc/systemd/system/gpubid.service", ("systemd/gpubid.service",)),
    "backup": Kind("the service and timer that copy the ledger", ("systemd/gpubid-backup.*",)),
    "group": Kind("who may read: /etc/sysusers.d/gpubid.conf", ("systemd/gpubid.sysusers",)),
    "scrape": Kind("the targets that Prometheus scrapes, and the rules that it loads", ("prometheus/scrape.yml",)),
    "alerts": Kind(
        "Prometheus' rules, and the series that they read", ("prometheus/alerts.yml", "prometheus/rec*.yml")
    ),
    "runbook": Kind("what to do when an alert fires", ("runbook.md",)),
    "dashboards": Kind("Grafana's dashboards", ("grafana/*.json",)),
}
Shown = Annotated[str, typer.Argument(metavar="KIND", help="One of: " + ", ".join(KINDS) + ".")]


@app.command()
def show(
    kind: Shown,
    name: Annotated[str | None, typer.Argument(help="Which file, if the kind has several.")] = None,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write all files there; no existing file is overwritten.")
    ] = None,
) -> None:
    """Print a shipped file, or write all files of its kind into a folder."""
    if kind not in KINDS:
        exits.stop(exits.BAD_INPUT, [f"{kind}: no such kind; write one of {', '.join(KINDS)}"])
    found = {
        file.name: file for file in files(session.shipped_folder() / "deploy", KINDS[kind]) if name in {None, file.name}
    }
    if not found:
        exits.stop(
            exits.BAD_INPUT,
            [f"no file of the kind {kind} has that name; `gpubid deploy show {kind} --to FOLDER` writes all"],
        )
    if to is not None:
        _write(list(found.values()), to)
    elif len(found) > 1:
        exits.stop(exits.BAD_INPUT, [f"there are several: name one of {', '.join(found)}, or a folder with --to"])
    else:
        sys.stdout.write(text(next(iter(found.values()))))


def files(folder: Path, kind: Kind) -> list[Path]:
    """Return the files of a kind, by name."""
    return sorted(file for pattern in kind.patterns for file in folder.glob(pattern))


def text(file: Path) -> str:
    """Return a file adapted to this installation: its units run this program."""
    said = file.read_text()
    own = Path(sys.prefix) / "bin" / "gpubid"
    if file.suffix != ".service" or sys.prefix == "/usr/lib/gpubid":
        return said
    if any(own.is_relative_to(folder) for folder in HIDDEN):
        sys.stderr.write(
            f"gpubid: the unit hides {own} from the service; install the program where a service may read it: "
            "UV_TOOL_DIR=/opt/gpubid UV_TOOL_BIN_DIR=/usr/local/bin uv tool install WHEEL\n"
        )
    return said.replace(PACKAGED, str(own))


def _write(shipped: Collection[Path], folder: Path) -> None:
    clash = [folder / file.name for file in shipped if (folder / file.name).exists()]
    if clash:
        exits.stop(exits.BAD_INPUT, [f"{file} exists; nothing was written; name another folder" for file in clash])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in shipped:
            (folder / file.name).write_text(text(file))
            session.say(str(folder / file.name))
    except OSError as error:
        exits.unwritable(folder, error)
