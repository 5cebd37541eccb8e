"""`gpubid lab check`: test that a strategy decides by the past alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.lab import running
from agent.cli.shared import exits, own_strategies, session

if TYPE_CHECKING:
    from agent.lab.engine.lookahead_check import Verdict


def check(
    strategy: Annotated[
        str, typer.Argument(help="A strategy, also of an installed package, or the path or stem of your own file.")
    ],
    traces: Annotated[
        Path | None, typer.Option(envvar="GPUBID_LAB_TRACES", help="A trace file or folder; drawn courses by default.")
    ] = None,
    directory: own_strategies.DirectoryOption = None,
    config: own_strategies.ConfigOption = None,
    as_json: session.JsonOption = False,
) -> None:
    """Replace the future of a market by noise, and compare the decisions before it. Exit 1 if one differs."""
    from agent.lab.engine import lookahead_check
    from agent.lab.traces import course, trace_files

    chosen = own_strategies.find(strategy, config, directory)
    with running.honest():
        over = lookahead_check.drawn()
        if traces is not None:
            over = {
                each.pool: course.of_trace(each, hours=lookahead_check.HOURS) for each in trace_files.folder(traces)
            }
    verdict = lookahead_check.check(chosen, over)
    if as_json:
        session.print_json(_document(verdict))
    else:
        _print(verdict)
    if verdict.finding is not None:
        raise typer.Exit(exits.FAILED)


def _document(verdict: "Verdict") -> dict[str, object]:
    found = verdict.finding
    return {
        "strategy": verdict.strategy,
        "ok": found is None,
        "compared": verdict.compared,
        "futures": verdict.futures,
        "findings": []
        if found is None
        else [
            {
                "rule": found.rule,
                "course": found.course,
                "at": found.at.isoformat(),
                "first": list(found.first),
                "then": list(found.then),
            }
        ],
    }


def _print(verdict: "Verdict") -> None:
    found = verdict.finding
    if found is None:
        session.say(f"ok: {verdict.strategy} proposed the same, {verdict.compared} views over {verdict.futures} runs")
        return
    at = found.at.isoformat()
    session.say(f"{verdict.strategy} proposes something else with {found.rule} ({found.course}), at {at}:")
    for name, proposals in (("first", found.first), ("then", found.then)):
        session.say(f"  {name}: {'; '.join(proposals) or 'nothing'}")
