"""Write the generated pages of the handbook anew; `make handbook` runs this, and a test says when it is due."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent import strategy_files
from agent.baselines import baseline_loading
from agent.config import config_schema
from agent.config.notify_settings import severity_of
from agent.domain.market.baseline import Baseline
from agent.domain.market.tenure import Tenure
from agent.domain.record.event_kind import EventKind, LoggedKind
from agent.web.feed import openapi

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
ABOUT_FEED = """\
The daemon serves one read model of the fleet: every figure as of one instant, for your own programs too, without a
token. Money is in dollars, times are in UTC. Fields are added, never renamed or removed.

```sh
curl http://127.0.0.1:9477/api/v1/fleet
curl --no-buffer http://127.0.0.1:9477/api/v1/events
```

The second command prints the fleet after each change, and once a minute. Between them it prints beats, with the money
of that instant and when the last cycle ended. A stream sends something every ten seconds: a client that
receives nothing for 25 seconds knows that the daemon is gone. At most 16 streams are open; one more ends the oldest,
which says so in its last message, `refused`. The operators' socket beside the ledger serves the same paths.
"""


ABOUT_CLOUDS = """\
Which clouds can be rented at through [your own dstack server](other-clouds.md), by what dstack {server} says of itself.
A cloud without an extra comes with `dstack[server]`. The prices are published ones for one GPU on demand, each with its
date: figures to compare with. What is free now, and for how much, only your server tells: `gpubid plan`.
"""
ABOUT_OTHERS = """\
## Clouds that dstack does not know

Nothing can be rented there through gpubid. Their published prices are baselines of `gpubid estimate` and
`gpubid savings`.
"""


def pages() -> dict[str, str]:
    """Return the text of each generated page by its name."""
    return {"keys.md": keys(), "events.md": events(), "feed.md": feed(), "clouds.md": clouds()}


def clouds() -> str:
    """Return the table of clouds: how each is rented at through gpubid, and what is published of its prices."""
    known = tomllib.loads((Path(__file__).parent / "clouds.toml").read_text())
    rows = known["clouds"]
    prices = _published()
    theirs = {name: row.get("published", name) for name, row in rows.items()}
    others = [name for name in prices if name not in theirs.values()]
    parts = [
        "# Clouds\n",
        GENERATED,
        ABOUT_CLOUDS.format(server=known["server"]),
        "| cloud | name in `backends` | in a plain server | extra | through gpubid | published, one GPU an hour |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_cloud(name, row, prices.get(theirs[name], "-")) for name, row in rows.items()),
        "",
        ABOUT_OTHERS,
        "| cloud | published, one GPU an hour |",
        "| --- | --- |",
        *(f"| `{name}` | {prices[name]} |" for name in others),
        "",
    ]
    return "\n".join(parts)


def _published() -> dict[str, str]:
    """Return the published prices on demand of each cloud, the cheapest of each model."""
    found: dict[str, dict[str, Baseline]] = {}
    for figure in baseline_loading.load().figures:
        own = found.setdefault(figure.cloud, {}) if figure.tenure is Tenure.ON_DEMAND else {}
        before = own.setdefault(figure.gpu, figure)
        own[figure.gpu] = min(before, figure, key=_per_gpu)
    return {
        cloud: "; ".join(f"{gpu} ${_per_gpu(each):.2f} ({each.dated})" for gpu, each in sorted(own.items()))
        for cloud, own in sorted(found.items())
    }


def _per_gpu(figure: Baseline) -> float:
    return figure.least.dollars / figure.gpus


def _cloud(name: str, row: dict[str, Any], prices: str) -> str:
    names = ", before ".join(f"`{each}`" for each in (name, *row.get("also", ())))
    how = f"no: {row['refused']}" if "refused" in row else "yes"
    extra = f"`{row['extra']}`" if "extra" in row else "none"
    return f"| {row['title']} | {names} | {'yes' if row['listed'] else 'no'} | {extra} | {how} | {prices} |"


def keys() -> str:
    """Return the reference of every key of agent.toml and of the strategy files."""
    schema = config_schema.agent_schema()
    tables = schema["$defs"]
    plain = {key: value for key, value in schema["properties"].items() if not str(value).count("$ref")}
    top = {"description": "Keys before the first table.", "properties": plain}
    parts = [
        "# Keys\n",
        GENERATED,
        ABOUT_KEYS,
        *(_table(name, table) for name, table in {"Top of the file": top, **tables}.items()),
        *(_strategy(name) for name in sorted(strategy_files.params(strategy_files.BUILT_IN))),
    ]
    return "\n".join(parts)


def events() -> str:
    """Return the reference of every kind of event, with its severity for `[notify]`."""
    rows = [f"| `{kind}` | {severity_of(kind).name.lower()} |" for kind in sorted((*EventKind, *LoggedKind))]
    table = ["| event | severity |", "| --- | --- |", *rows, ""]
    return "\n".join(["# Events\n", GENERATED, ABOUT_EVENTS, *table])


def feed() -> str:
    """Return the reference of the feed, from its OpenAPI document."""
    told = openapi.document()
    paths = [f"| `{path}` | {_line(verbs['get']['summary'])} |" for path, verbs in told["paths"].items()]
    head = ["# The feed\n", GENERATED, ABOUT_FEED, "| path | answer |", "| --- | --- |", *paths, ""]
    return "\n".join([*head, *(_shape(name, shape) for name, shape in told["components"]["schemas"].items())])


def _shape(name: str, shape: dict[str, Any]) -> str:
    rows = [
        f"| `{field}` | {_type(kind)} | {_line(kind['description'])} |" for field, kind in shape["properties"].items()
    ]
    head = [f"## {name}\n", _line(shape["description"]) + "\n", "| field | type | meaning |", "| --- | --- | --- |"]
    return "\n".join([*head, *rows, ""])


def _type(kind: dict[str, Any]) -> str:
    if "anyOf" in kind:
        return " or ".join(_type(each) for each in kind["anyOf"])
    if "$ref" in kind:
        return str(kind["$ref"]).rpartition("/")[2]
    if kind["type"] == "array":
        return f"list of {_type(kind['items'])}"
    return "time" if kind.get("format") == "date-time" else str(kind["type"])


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
