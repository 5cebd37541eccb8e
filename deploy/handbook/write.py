"""Write the generated pages of the handbook anew; `make handbook` runs this, and a test says when it is due."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent import tuning
from agent.config import config_schema
from agent.config.notify import severity_of
from agent.domain.record.event_kind import EventKind, LoggedKind

ROOT = Path(__file__).parents[2]
PAGES = Path(__file__).parent / "pages"
GENERATED = "<!-- Written by deploy/handbook/write.py (`make handbook`): change the code, not this page. -->\n"
ABOUT_KEYS = """\
Every key of `agent.toml`, then every number of the shipped strategies. The comments of `agent.toml` and of
`strategies/` say more about each.
"""
ABOUT_EVENTS = """\
Kinds of events. `gpubid ledger events --kind KIND` lists those that happened; some are only
written to the log. The severity is the one that rules of `[notify]` compare with.
"""


def pages() -> dict[str, str]:
    """Return the text of each generated page by its name."""
    return {"keys.md": keys(), "events.md": events()}


def keys() -> str:
    """Return the reference of every key of agent.toml and of the strategy files."""
    tables = config_schema.agent_schema()["$defs"]
    parts = [
        "# Keys\n",
        GENERATED,
        ABOUT_KEYS,
        *(_table(name, table) for name, table in tables.items()),
        *(_strategy(name) for name in sorted(tuning.params(tuning.BUILT_IN))),
    ]
    return "\n".join(parts)


def events() -> str:
    """Return the reference of every kind of event, with its severity for `[notify]`."""
    rows = [f"| `{kind}` | {severity_of(kind).name.lower()} |" for kind in sorted((*EventKind, *LoggedKind))]
    table = ["| event | severity |", "| --- | --- |", *rows, ""]
    return "\n".join(["# Events\n", GENERATED, ABOUT_EVENTS, *table])


def _table(name: str, table: dict[str, Any]) -> str:
    wanted = table.get("required", ())
    rows = [_row(key, value, is_wanted=key in wanted) for key, value in table["properties"].items()]
    head = [f"## {name.removesuffix('Table')}\n", _line(table.get("description", "")) + "\n"]
    return "\n".join([*head, "| key | default | range | meaning |", "| --- | --- | --- | --- |", *rows, ""])


def _row(key: str, value: dict[str, Any], *, is_wanted: bool) -> str:
    meaning = _line(value.get("description", ""))
    return f"| `{key}` | {_default(value, is_wanted=is_wanted)} | {_range(value)} | {meaning} |"


def _default(value: dict[str, Any], *, is_wanted: bool) -> str:
    if is_wanted:
        return "must be given"
    given = value.get("default")
    return "-" if given is None or isinstance(given, dict) else f"`{json.dumps(given)}`"


def _range(value: dict[str, Any]) -> str:
    least, most = value.get("minimum"), value.get("maximum")
    above, below = value.get("exclusiveMinimum"), value.get("exclusiveMaximum")
    if "enum" in value:
        return ", ".join(f"`{each}`" for each in value["enum"])
    low = f"above {above}" if above is not None else f"from {least}" if least is not None else ""
    high = f"below {below}" if below is not None else f"to {most}" if most is not None else ""
    return f"{low} {high}".strip() or "-"


def _strategy(name: str) -> str:
    text = (ROOT / "strategies" / f"{name}.toml").read_text()
    head, rows = "", []
    for comment, key, given in _commented(text):
        if key == "strategy":
            head = comment
        else:
            rows.append(f"| `{key}` | `{given}` | {comment} |")
    table = ["| key | default | meaning |", "| --- | --- | --- |", *rows, ""]
    return "\n".join([f"## Strategy {name}\n", f"{head}\n", *table])


def _commented(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield comment, key and value of each line that sets a key."""
    comment: list[str] = []
    for line in text.splitlines():
        if line.startswith("#:"):
            continue
        if line.startswith("#"):
            comment.append(line.removeprefix("#").strip())
        elif "=" in line:
            key, _, given = line.partition("=")
            yield _line(" ".join(comment)), key.strip(), given.partition(" #")[0].strip()
            comment = []


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    for page, text in pages().items():
        (PAGES / page).write_text(text)
