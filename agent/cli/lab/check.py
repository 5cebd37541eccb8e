"""`gpubid lab check`: test that a strategy decides by the past alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.lab import cluster, running
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
    workers: Annotated[int, typer.Option(min=1, help="Processes of this machine.")] = 1,
    on: cluster.OnOption = None,
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
    with cluster.workers(on, workers) as computing:
        verdict = lookahead_check.check(chosen, over, computing)
    if as_json:
        session.print_json(_document(verdict))
    else:
        _print(verdict)
    if verdict.finding is not None:
        raise typer.Exit(exits.FAILED)


def _document(verdict: "Verdict") -> dict[str, object]:
    finding = verdict.finding
    return {
        "strategy": verdict.strategy,
        "ok": finding is None,
        "compared": verdict.compared,
        "futures": verdict.futures,
        "findings": []
        if finding is None
        else [
            {
                "rule": finding.rule,
                "course": finding.course,
                "at": finding.at.isoformat(),
                "first": list(finding.first),
                "then": list(finding.then),
            }
        ],
    }


def _print(verdict: "Verdict") -> None:
    finding = verdict.finding
    if finding is None:
        session.say(f"ok: {verdict.strategy} proposed the same in {verdict.compared} views of {verdict.futures} runs")
        return
    at = finding.at.isoformat()
    session.say(
        f"{verdict.strategy} proposed otherwise at {at} under another future ({finding.rule} on {finding.course}):"
    )
    for name, proposals in (("first", finding.first), ("then", finding.then)):
        session.say(f"  {name}: {'; '.join(proposals) or 'nothing'}")
