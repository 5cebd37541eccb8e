"""Changes of a workload's `shadow` and `strategy` in the configuration. Comments and other keys stay as they are."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.cli.shared import exits, session
from agent.config.files import layers
from agent.config.problems import ConfigError

if TYPE_CHECKING:
    from agent.config.settings import Config


def put_in_shadow(config: Path, workload: str, name: str, directory: Path) -> list[Path]:
    """Let a strategy decide on paper beside the live one. Return the changed files.

    A configuration without a folder of own strategies gets `directory`.
    """

    def into(table: Any) -> None:  # noqa: ANN401 - tomlkit's own
        shadows = list(table.get("shadow", []))
        table["shadow"] = [*shadows, *([] if name in shadows else [name])]

    changes: dict[Path, Callable[[Any], None]] = {}
    if session.read(config)[0].strategies is None:
        place = str(directory.relative_to(config.parent)) if directory.is_relative_to(config.parent) else str(directory)
        changes[config] = lambda document: document.setdefault("strategies", {}).update({"directory": place})
    file = _file_of(config, workload)
    before = changes.get(file)

    def both(document: Any) -> None:  # noqa: ANN401 - tomlkit's own
        if before is not None:
            before(document)
        into(document["workloads"][workload])

    return _changed(config, {**changes, file: both})


def promote(config: Path, workload: str, name: str) -> list[Path]:
    """Let a strategy decide for a workload, and remove it from the shadow. Return the changed files."""

    def over(document: Any) -> None:  # noqa: ANN401 - tomlkit's own
        table = document["workloads"][workload]
        table["strategy"] = name
        rest = [each for each in table.get("shadow", []) if each != name]
        if rest:
            table["shadow"] = rest
        else:
            table.pop("shadow", None)

    return _changed(config, {_file_of(config, workload): over})


def _file_of(config: Path, workload: str) -> Path:
    """Return the file that contains the table of a workload: agent.toml or an included file."""
    read = layers.read(config)
    holding = [part.file for part in (read, *read.parts) if ("workloads", workload) in part.lines.marks]
    return Path(holding[0]) if holding else config


def _changed(config: Path, changes: "dict[Path, Callable[[Any], None]]") -> list[Path]:
    """Change all files or none. A change that would break the configuration is undone."""
    import tomlkit

    from agent.lab.tuning import tuned_file

    before = {file: file.read_text("utf-8") for file in changes}
    try:
        for file, change in changes.items():
            document = tomlkit.parse(before[file])
            change(document)
            tuned_file.write(file, tomlkit.dumps(document))
        _parsed(config)
    except (ConfigError, tuned_file.WriteError) as error:
        for file, text in before.items():
            if file.read_text("utf-8") != text:
                tuned_file.write(file, text)
        exits.stop(exits.BAD_INPUT, [f"{config} was not changed: {error}"])
    return [file for file in changes if file.read_text("utf-8") != before[file]]


def _parsed(config: Path) -> "Config":
    from agent.simulator import climate_files

    return session.parse(config, climate_files.names())[0]
