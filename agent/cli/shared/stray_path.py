"""Answers a path that a person wrote as an argument with the command that takes it: `--config PATH`."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from typer.core import TyperCommand

from agent.cli.shared import exits

if TYPE_CHECKING:
    import typer
    from typer._click.core import Context

OPTIONS = ("--config", "-c")
"""The names of the option for the file."""
TARGETS = frozenset({"target", "targets", "workload", "slot"})
"""The names of the arguments that name a part of the fleet. No such name ends with `.toml`."""


class Verb(TyperCommand):
    """A verb that names `--config` if its only surplus argument is a path, or if a target is a `.toml` file."""

    allow_extra_args = True

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse the words after the verb. Refuse surplus ones: a path with the right command, others as typer does."""
        words = list(args)
        surplus = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return surplus
        if len(surplus) == 1 and _is_path(surplus[0]) and self._lacks_file(words):
            _refuse(_verb(ctx), words, surplus[0])
        if surplus:
            ctx.fail(f"Got unexpected extra argument{'s' if len(surplus) > 1 else ''} ({' '.join(surplus)})")
        self._check_targets(ctx, words)
        return surplus

    def _check_targets(self, ctx: "Context", words: Sequence[str]) -> None:
        """Refuse a target that is a `.toml` file. A required target without another value is left to write."""
        arguments = (each for each in self.params if each.param_type_name == "argument")
        for argument in (each for each in arguments if each.name in TARGETS):
            value = ctx.params[argument.name or ""]
            targets = [value] if isinstance(value, str) else list(value or ())
            files = [target for target in targets if target.endswith(".toml")]
            if files and self._lacks_file(words):
                left = ["TARGET"] if argument.required and len(files) == len(targets) else []
                _refuse([*_verb(ctx), *left], words, files[0])

    def _lacks_file(self, words: Sequence[str]) -> bool:
        """Return whether the verb takes a configuration file that the words do not name."""
        takes_file = any(set(OPTIONS) <= set(each.opts) for each in self.params)
        return takes_file and not any(word.startswith(OPTIONS) for word in words)


def watch_for(app: "typer.Typer") -> None:
    """Let every verb of `app`, and of the groups in it, answer a stray path."""
    for verb in app.registered_commands:
        verb.cls = Verb
    for group in app.registered_groups:
        if group.typer_instance is not None:
            watch_for(group.typer_instance)


def _is_path(word: str) -> bool:
    return word.endswith(".toml") or Path(word).is_file()


def _verb(ctx: "Context") -> list[str]:
    """Return the words of the verb, without the program's name."""
    return ctx.command_path.removeprefix(ctx.find_root().command_path).split()


def _refuse(verb: Sequence[str], words: Sequence[str], path: str) -> None:
    others = [word for word in words if word != path]
    right = shlex.join(["gpubid", *verb, *others, "--config", path])
    sys.stderr.write(f"gpubid: the configuration file is an option; write `{right}`\n")
    sys.exit(exits.BAD_INPUT)
