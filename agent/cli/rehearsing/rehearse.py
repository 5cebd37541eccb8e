"""`gpubid rehearse`: a day of your own workloads on a simulated market, in seconds and free of charge."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.shared import completion, exits, instants, session

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from agent.cli.rehearsing.rehearsal import Rehearsal, Scene

MOST_HOURS = 24 * 366


def rehearse(  # noqa: PLR0913 - one parameter per option
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    climate: Annotated[
        str,
        typer.Option(
            help="The simulated market; `gpubid simulate --help` lists them.", autocompletion=completion.climates
        ),
    ] = "calm",
    hours: Annotated[float, typer.Option(min=0.01, max=MOST_HOURS, help="Simulated hours.")] = 24.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulated market: the same seed gives the same day.")] = 7,
    strategy: Annotated[
        str | None, typer.Option(help="Run every workload with this strategy.", autocompletion=completion.strategies)
    ] = None,
    hosts: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Number of hosts; the climate's own by default.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Simulated start, UTC; 2026-07-27 by default."),
    ] = None,
    speed: Annotated[float | None, typer.Option(help="Speed of real processes, 1 to 30 (the default).")] = None,
    keep_ledger: Annotated[Path | None, typer.Option(help="Keep the ledger in this directory.")] = None,
    as_json: session.JsonOption = False,
) -> None:
    """Rehearse the configured workloads against a simulated market and report what happened."""
    from agent.cli.rehearsing.rehearsal import START, Scene
    from agent.simulator.climate import ClimateError

    begins = instants.instant("--start", start) or START
    session.log_quietly()
    settings, tuned = session.read(config)
    if strategy is not None and strategy not in tuned:
        exits.stop(
            exits.BAD_INPUT, [f"--strategy: there is no strategy {strategy!r}; known: {', '.join(sorted(tuned))}"]
        )
    if keep_ledger is not None:
        _make(keep_ledger)
    try:
        rehearsed = _run(settings, tuned, Scene(climate, hours, seed, strategy, hosts, speed, begins), keep_ledger)
    except ClimateError as error:
        exits.stop(exits.BAD_INPUT, [f"--climate: {error}"])
    if as_json:
        session.print_json(rehearsed.figures)
        return
    from rich.console import Console

    from agent.cli.rehearsing import rehearsal_report

    rehearsal_report.print_report(rehearsed, Console(width=None if session.is_terminal() else 140, markup=False))


def _make(directory: Path) -> None:
    if (directory / "rehearsal.sqlite").exists():
        sentence = f"--keep-ledger: {directory} already contains a rehearsal; name another directory"
        exits.stop(exits.BAD_INPUT, [sentence])
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        exits.stop(exits.BAD_INPUT, [f"--keep-ledger: {directory} cannot be made ({error.strerror}); name another"])


def _run(settings: object, tuned: object, scene: "Scene", directory: Path | None) -> "Rehearsal":
    from dataclasses import replace

    from rich.console import Console
    from rich.progress import Progress

    from agent.cli.rehearsing.rehearsal import rehearse as run

    with Progress(
        console=Console(stderr=True), transient=True, disable=not session.is_terminal(sys.stderr)
    ) as progress:
        task = progress.add_task(f"{scene.hours:g} simulated hours", total=1.0)
        scene = replace(scene, on_progress=lambda share: progress.update(task, completed=share))
        return asyncio.run(_until_signal(run(settings, tuned, scene, directory)))  # type: ignore[arg-type]


async def _until_signal(rehearsing: "Coroutine[None, None, Rehearsal]") -> "Rehearsal":
    """Rehearse until SIGTERM or SIGHUP, which end it as Ctrl-C does: no folder and no process remains."""
    task, signals = asyncio.current_task(), list[int]()

    def stop(number: int) -> None:
        signals.append(number)
        if task is not None:
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        # Under nohup it continues when its terminal closes.
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        return await rehearsing
    except asyncio.CancelledError:
        if signals:
            raise SystemExit(128 + signals[0]) from None
        raise
