"""Numbers of a strategy given on the command line: `--set headroom=0.2`."""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.cli.shared import exits

if TYPE_CHECKING:
    from agent.decide.strategy import Tuned


def changed(chosen: "Tuned", pairs: Sequence[str]) -> "Tuned":
    """Return a strategy with these numbers changed, or end with the mistake and the known keys."""
    import pydantic

    from agent import strategy_files

    if not pairs:
        return chosen
    known = type(chosen.params).model_fields
    values: dict[str, Any] = chosen.params.model_dump()
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or key.strip() not in known:
            keys = ", ".join(sorted(known))
            exits.stop(exits.BAD_INPUT, [f"--set {pair}: {chosen.name} has no such key; write KEY=VALUE with {keys}"])
        values[key.strip()] = _value(text.strip())
    try:
        params = type(chosen.params).model_validate(values)
    except pydantic.ValidationError as error:
        mistakes = [f"--set {'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        exits.stop(exits.BAD_INPUT, mistakes)
    return replace(chosen, params=params, digest=strategy_files.digest(chosen.name, params))


def _value(text: str) -> object:
    """Return the TOML value of a text. Other text is returned as it is, so 45m needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
