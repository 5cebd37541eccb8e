"""Tuned numbers as a strategy file: the comments of the changed file stay, and a header names their source.

Invariants:
1. A file is written whole or not at all.
"""

import os
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import tomlkit

from agent.config import problems
from agent.decide.strategy import Params
from agent.lab.bench import interval
from agent.lab.tuning.number_search import Tuning
from agent.lab.tuning.search_space import Value

MARK = "# Tuned: "
SCHEMA = "#:schema "


class WriteError(Exception):
    """The file cannot be written. The message says what to do."""

    code = "unwritable"


def text(tuning: Tuning, base: str | None) -> str:
    """Return the strategy file `base` with the tuned numbers in place of its own, or the numbers without `base`."""
    document = tomlkit.parse(base or f'strategy = "{tuning.strategy}"\n')
    numbers: Mapping[str, Value] = tuning.changed if base is not None else _all(tuning.params)
    for key, value in numbers.items():
        document[key] = _written(value)
    lines = [line for line in tomlkit.dumps(document).splitlines() if not line.startswith(MARK)]
    first = 1 if lines and lines[0].startswith(SCHEMA) else 0
    content = "\n".join([*lines[:first], *_origin(tuning), *lines[first:]]) + "\n"
    tomllib.loads(content)
    return content


def with_schema(text: str, folder: Path, schema: Path) -> str:
    """Return the text of a file of that folder. If its first line names no existing schema, it gets `schema`."""
    first, _, rest = text.partition("\n")
    place = first.removeprefix(SCHEMA).strip()
    if place == first or "://" in place or (folder / place).exists():
        return text
    return f"{SCHEMA}{schema.absolute()}\n{rest}"


def write(file: Path, content: str) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half.

    Raises:
        WriteError: the file cannot be written.
    """
    draft = file.with_name(f".{file.name}.{os.getpid()}.new")
    try:
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "w") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise WriteError(f"{file} cannot be written ({error.strerror}); name another with --out") from None


def _origin(tuning: Tuning) -> list[str]:
    about, held = tuning.about, tuning.held
    span = about.get("span")
    when = f", {str(span[0])[:10]} to {str(span[1])[:10]}" if isinstance(span, list) else ""
    data = (
        about.get("traces") or ", ".join(str(about[key]) for key in ("climate", "seeds") if key in about) or "no traces"
    )
    scores = f"{held.tuned.mean:.4g} a run, {held.shipped.mean:.4g} before; difference {held.difference:+.3g}"
    sure = f"95 % {interval.as_text(held.interval, '.3g')}; late {held.tuned.late}, {held.shipped.late} before"
    return [
        f"{MARK}on {data}{when}, {tuning.whole.fitted.cases} runs; study {tuning.study}.",
        f"{MARK}held out, {held.cases} runs: {scores}, {sure}.",
    ]


def _all(params: Params) -> dict[str, Value]:
    return {key: getattr(params, key) for key in type(params).model_fields}


def _written(value: Value) -> str | bool | int | float:
    return problems.duration_text(value) if isinstance(value, timedelta) else value
