"""The committed JSON schemas are those of the code, and the shipped files satisfy them."""

import json
import runpy
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.configs import GOOD, added, changed

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "deploy" / "schema"
SHIPPED = [ROOT / "agent.toml", *sorted((ROOT / "strategies").glob("*.toml"))]


def schema_of(path: Path) -> Any:
    first = path.read_text().splitlines()[0]
    assert first.startswith("#:schema ")
    return json.loads((path.parent / first.removeprefix("#:schema ")).read_text())


@pytest.mark.parametrize("name", ["agent.schema.json", "strategy.schema.json"])
def test_a_schema_is_current(name: str) -> None:
    texts = runpy.run_path(str(SCHEMAS / "write.py"))["texts"]()
    assert (SCHEMAS / name).read_text() == texts[name], "run make schema"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_file_satisfies_the_schema_it_names(path: Path) -> None:
    validator = jsonschema.Draft7Validator(schema_of(path))
    assert list(validator.iter_errors(tomllib.loads(path.read_text()))) == []


def test_a_table_may_be_in_an_included_file() -> None:
    schema, part = schema_of(ROOT / "agent.toml"), tomllib.loads(GOOD)
    del part["limits"]
    with pytest.raises(jsonschema.ValidationError, match="limits"):
        jsonschema.validate(part, schema, cls=jsonschema.Draft7Validator)
    jsonschema.validate({"include": ["conf.d/*.toml"], **part}, schema, cls=jsonschema.Draft7Validator)


@pytest.mark.parametrize(
    "text",
    [
        added("slots = -1"),
        added("gpu = 'RTX 4090'"),
        added("zzz = 1"),
        added("checkpoint = { interval = 15 }"),
        changed("0.45", "-1"),
        changed("max_instances = 3\n", ""),
        changed('strategy = "patient"\n', ""),
    ],
)
def test_the_schema_refuses_what_the_program_refuses(text: str) -> None:
    schema = schema_of(ROOT / "agent.toml")
    jsonschema.validate(tomllib.loads(GOOD), schema, cls=jsonschema.Draft7Validator)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text), schema, cls=jsonschema.Draft7Validator)
