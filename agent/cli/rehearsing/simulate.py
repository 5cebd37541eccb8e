"""`gpubid simulate`: the simulated markets as a separate program, for tests, rehearsals and the vendors' tools.

One JSON line on stdout, {"vast_url": ..., "vast_key": ..., "runpod_url": ..., "runpod_key": ...,
"mithril_url": ..., "mithril_key": ..., "control_url": ...}, then it serves until SIGTERM, SIGINT or SIGHUP and ends
with 0. Bad input ends with 2 and a sentence on stderr.
"""

import asyncio
import contextlib
import dataclasses
import json
import math
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from agent.cli.shared import completion, instants

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent.simulator.climate import Climate
    from agent.simulator.market_server import Simulator
    from agent.simulator.processes.process_registry import ProcessRegistry
    from agent.simulator.simulated_clock import Clock

BAD_INPUT = 2
TICK_SECONDS = 1.0
REAL_TICK_SECONDS = 0.05
"""With real processes: the longest delay until an outbid process is killed while the market gets no requests."""


def simulate(  # noqa: PLR0913 - one parameter per option
    climate: Annotated[
        str, typer.Option(help="One of the climates listed above.", autocompletion=completion.climates)
    ] = "calm",
    seed: Annotated[int, typer.Option(help="Same seed, same market, same answers.")] = 7,
    vast_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of Vast.ai's API; 0 takes any.")] = 0,
    runpod_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of RunPod's API; 0 takes any.")] = 0,
    mithril_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of Mithril's API; 0 takes any.")] = 0,
    control_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the control API; 0 takes any.")] = 0,
    speed: Annotated[float, typer.Option(min=0.0, help="Simulated seconds per real second; 0: only on request.")] = 1.0,
    hosts: Annotated[int | None, typer.Option(min=1, max=100_000, help="Hosts; by default the climate's own.")] = None,
    credit: Annotated[float | None, typer.Option(help="Dollars of the account; the climate's own by default.")] = None,
    start: Annotated[str | None, typer.Option(metavar="TIME", help="First instant, UTC; now by default.")] = None,
    rate_limits: Annotated[str, typer.Option(help="lenient (the daily quota of search rows only) or published.")] = (
        "lenient"
    ),
    runpod_mode: Annotated[
        str | None,
        typer.Option(help="What RunPod sells, as agent/simulator/runpod_modes.py names it; else the climate's."),
    ] = None,
    runpod_credit: Annotated[
        float | None, typer.Option(help="Dollars at RunPod; the climate's own by default.")
    ] = None,
    about: Annotated[bool, typer.Option("--about", help="Show which figures are recorded, which assumed.")] = False,
    weather: Annotated[bool, typer.Option("--weather", help="List the faults that POST /weather takes.")] = False,
    disks: Annotated[Path | None, typer.Option(help="Keep real_processes' disks in a new folder in this one.")] = None,
) -> None:
    """Serve the simulated markets over the vendors' HTTP APIs until stopped.

    POST /weather at the control URL lets faults blow: throttling, lost replies, lying lists, field_lie and more.
    """
    if about or weather:
        sys.stdout.write(_about() if about else _weather())
        return
    from agent.simulator.simulated_clock import ScaledClock

    _check_finite({"--speed": speed, "--credit": credit or 0.0, "--runpod-credit": runpod_credit or 0.0})
    clock, named = ScaledClock(_instant(start), speed), _named(climate, runpod_mode)
    with _registry(clock, named, speed, disks) as processes:
        simulator = _simulator(
            clock,
            named,
            seed=seed,
            hosts=hosts,
            credits_=(credit, runpod_credit),
            rate_limits=rate_limits,
            processes=processes,
        )
        ports = {"vast": vast_port, "runpod": runpod_port, "mithril": mithril_port}
        asyncio.run(_serve(simulator, ports, control_port))


simulate.__doc__ = """Serve the simulated markets over the vendors' HTTP APIs until stopped.

The first line printed is JSON with the addresses and the keys they take: vast_url, vast_key, runpod_url, runpod_key,
mithril_url, mithril_key, control_url. Any other key is refused.

The climate real_processes runs the commands of rented containers on this machine, as you, at a --speed from 1 to 30.

\b
Climates:
  bidding_war   many rivals that raise their bids when displaced
  bids_end      RunPod's bids come to an end, step by step, within a day
  blackout      the API is down for 30 minutes, twice
  broke         the credit runs out; a deposit comes in the evening
  calm          few rivals, steady prices, good hosts
  host_death    hosts fall silent or vanish, ours among them
  lying_list    empty, partial and stale lists, each shorter than ten minutes
  price_spike   prices of every host double twice in a day
  real_processes  a bidding war; containers run their command on this machine
  recorded      the market as recorded in July and August 2026
  second_price  Mithril's pools are full, reserved away and fought over
"""


def _named(climate: str, runpod_mode: str | None) -> "Climate":
    """Return the climate, with another RunPod mode if one is named."""
    from agent.simulator import climate as climates
    from agent.simulator import runpod_modes

    try:
        named = climates.named(climate)
    except climates.ClimateError as error:
        _fail(str(error))
    if runpod_mode is None:
        return named
    if runpod_mode not in runpod_modes.NAMES:
        _fail(f"--runpod-mode: {runpod_mode!r} is none of {', '.join(runpod_modes.NAMES)}.")
    return dataclasses.replace(named, runpod=dataclasses.replace(named.runpod, mode=runpod_mode))


def _simulator(
    clock: "Clock",
    climate: "Climate",
    *,
    seed: int,
    hosts: int | None,
    credits_: tuple[float | None, float | None],
    rate_limits: str,
    processes: "ProcessRegistry | None",
) -> "Simulator":
    """Return a simulator with both markets."""
    from agent.simulator import call_gate
    from agent.simulator.market_server import Simulator
    from agent.simulator.runpod.http import rate_windows
    from agent.simulator.runpod.world import World as RunpodWorld
    from agent.simulator.vast.world import World

    gates = {
        "lenient": (call_gate.Gate, rate_windows.Limits),
        "published": (call_gate.published, rate_windows.published),
    }
    if rate_limits not in gates:
        _fail(f"--rate-limits: {rate_limits!r} is neither lenient nor published.")
    world = World(climate, seed=seed, start=clock.time(), hosts=hosts, credit=credits_[0])
    pods = RunpodWorld(climate, seed=seed, start=clock.time(), credit=credits_[1])
    keeper, pace = gates[rate_limits]
    return Simulator(world, clock, seed=seed, gate=keeper(), pods=pods, limits=pace(), processes=processes)


@contextlib.contextmanager
def _registry(
    clock: "Clock", climate: "Climate", speed: float, disks: Path | None
) -> "Iterator[ProcessRegistry | None]":
    """Yield the registry of the containers' processes, if the climate has any. No process outlives the block."""
    from agent.simulator.processes import process_registry

    if not climate.processes:
        if disks is not None:
            _fail(f"--disks: the climate {climate.name!r} runs no processes and has no disks.")
        yield None
        return
    if not process_registry.LEAST_SPEED <= speed <= process_registry.MOST_SPEED:
        _fail(f"--speed: real processes run at 1 to 30, not at {speed:g}.")
    try:
        registry = process_registry.ProcessRegistry(clock, speed=speed, below=disks)
    except OSError as error:
        _fail(f"--disks: {disks} cannot be made ({error.strerror}); name another.")
    try:
        yield registry
    finally:
        registry.close()


def _about() -> str:
    import importlib

    from agent.simulator import recorded_figures

    for market in ("runpod", "mithril"):
        importlib.import_module(f"agent.simulator.{market}.assumed_figures")  # adds its own figures to the list
    return recorded_figures.about()


def _weather() -> str:
    from agent.simulator import faults, field_lies

    return f"{faults.__doc__}\nA field_lie:\n\n{field_lies.__doc__}"


async def _serve(simulator: "Simulator", ports: "Mapping[str, int]", control_port: int) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Under nohup it continues when its terminal closes.
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    try:
        await _listen(simulator, ports, control_port)
        tick_seconds = REAL_TICK_SECONDS if simulator.world.climate.processes else TICK_SECONDS
        # Step the markets without requests too, so that an event sends its webhook and kills its processes.
        while not stopping.is_set():
            simulator.advance_to(simulator.clock.time())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), tick_seconds)
    finally:
        await simulator.stop()


async def _listen(simulator: "Simulator", ports: "Mapping[str, int]", control_port: int) -> None:
    """Open the ports and print their addresses."""
    try:
        await simulator.start(ports, control_port)
    except OSError as error:
        _fail(f"The port is not free: {error}.")
    first_line: dict[str, str] = {}
    for name, side in simulator.sides.items():
        first_line |= {f"{name}_url": simulator.url(name), f"{name}_key": side.key}
    first_line["control_url"] = simulator.control_url
    sys.stdout.write(json.dumps(first_line) + "\n")
    sys.stdout.flush()


def _check_finite(figures: dict[str, float]) -> None:
    for name, figure in figures.items():
        if not math.isfinite(figure):
            _fail(f"{name}: {figure} is not a finite number.")


def _instant(text: str | None) -> float | None:
    at = instants.instant("--start", text)
    return None if at is None else at.timestamp()


def _fail(sentence: str) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(BAD_INPUT)


if __name__ == "__main__":
    typer.run(simulate)
