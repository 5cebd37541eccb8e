"""`gpubid guard`: the program that runs in a rented instance, as one file."""

from pathlib import Path
from typing import Annotated

import typer

from agent.cli.shared import exits, session
from agent.config import guard_archive

app = typer.Typer(no_args_is_help=True, help="Build the program that carries checkpoints out of a rented instance.")


@app.command()
def build(
    to: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")] = Path(guard_archive.NAME),
) -> None:
    """Write the guard as one file that any Python from 3.8 on runs, and print its size and SHA-256."""
    archive = guard_archive.packed()
    try:
        to.write_bytes(archive)
    except OSError as error:
        exits.unwritable(to, error)
    session.say(f"{to}: {len(archive)} bytes, SHA-256 {guard_archive.digest(archive)}")
