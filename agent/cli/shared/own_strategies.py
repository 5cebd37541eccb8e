"""Own strategy files by path or by stem: `strategies/bold.toml`, or `bold` in the folder of the configuration."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.shared import exits, session

if TYPE_CHECKING:
    from agent.decide.strategy import Tuned

DirectoryOption = Annotated[
    Path | None, typer.Option("--directory", metavar="DIR", help="A folder of your own strategy files, by stem.")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="The configuration whose strategies table names that folder, if the file exists.",
    ),
]
NAMED = "write its path, such as strategies/bold.toml, or its stem with --directory DIR or --config FILE"
"""The syntax for an own file."""
IN_A_FOLDER = (
    "write the path of an own file, such as strategies/bold.toml, or name its folder in [strategies] directory"
)
"""The syntax for an own file in a verb that always reads the configuration."""


def is_path(name: str) -> bool:
    """Return whether a name is the path of a file, not a stem."""
    return name.endswith(".toml") or "/" in name


def configuration(config: Path | None) -> Path:
    """Return the configuration to read for a verb without its own default."""
    return config or Path(os.environ.get("GPUBID_CONFIG", session.DEFAULT_CONFIG))


def of_path(name: str) -> "Tuned":
    """Return the strategy of a file, or end with 2 and every mistake in it."""
    from agent import strategy_files
    from agent.config.problems import ConfigError

    try:
        return strategy_files.of_file(Path(name))
    except ConfigError as error:
        exits.stop(exits.BAD_INPUT, [str(problem) for problem in error.problems])


def known(config: Path | None, directory: Path | None) -> "Mapping[str, Tuned]":
    """Return every strategy by name, installed ones and files of the folder, or end with 2 and every mistake.

    The folder is `directory`, or the one that the configuration names, if there is a configuration.
    """
    from agent import strategy_files
    from agent.config.problems import ConfigError

    place = configuration(config)
    if directory is None and (config is not None or place.exists()):
        return session.read(place)[1]
    try:
        return strategy_files.load(directory)
    except ConfigError as error:
        exits.stop(exits.BAD_INPUT, [str(problem) for problem in error.problems])


def find(name: str, config: Path | None, directory: Path | None) -> "Tuned":
    """Return the strategy of a path or a name, or end with 2 and the known strategies."""
    if is_path(name):
        return of_path(name)
    strategies = known(config, directory)
    if name not in strategies:
        exits.stop(exits.BAD_INPUT, [f"there is no strategy {name!r}; known: {', '.join(sorted(strategies))}; {NAMED}"])
    return strategies[name]
