"""`gpubid simulate`: the simulated markets as a separate program, for tests, rehearsals and the vendors' tools.

One JSON line on stdout, {"NAME_url": ..., "NAME_key": ... of each market, "control_url": ...}, then it serves until
SIGTERM, SIGINT or SIGHUP and ends with 0. Bad input ends with 2 and a sentence on stderr.
"""

import asyncio
import contextlib
import json
import math
import signal
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from agent.cli.rehearsing import simulate_options
from agent.cli.shared import completion, exits, instants

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent.simulator.climate import Climate
    from agent.simulator.market_server import Simulator
    from agent.simulator.processes.process_registry import ProcessRegistry
    from agent.simulator.simulated_clock import Clock

TICK_SECONDS = 1.0
REAL_TICK_SECONDS = 0.05
"""With real processes: the longest delay until an outbid process is killed while the market gets no requests."""
PACES = {"lenient": False, "published": True}


def simulate(  # noqa: PLR0913 - one parameter per option
    climate: Annotated[
        str, typer.Option(help="One of the climates listed above.", autocompletion=completion.climates)
    ] = "calm",
    seed: Annotated[int, typer.Option(help="Seed of the market: the same seed gives the same answers.")] = 7,
    control_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the control API; 0 takes any.")] = 0,
    speed: Annotated[float, typer.Option(min=0.0, help="Speed of the clock. At 0 only POST /advance moves it.")] = 1.0,
    hosts: Annotated[int | None, typer.Option(min=1, max=100_000, help="Hosts; by default the climate's own.")] = None,
    start: Annotated[str | None, typer.Option(metavar="TIME", help="Simulated start, UTC; now by default.")] = None,
    rate_limits: Annotated[str, typer.Option(help="lenient (the daily quota of search rows only) or published.")] = (
        "lenient"
    ),
    about: Annotated[
        bool, typer.Option("--about", help="Print every figure of the markets, with the source of the recorded ones.")
    ] = False,
    weather: Annotated[bool, typer.Option("--weather", help="List the faults that POST /weather takes.")] = False,
    disks: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the disks of real_processes in DIR.")] = None,
    **of_markets: Any,  # noqa: ANN401 - a port, and what the market's record says
) -> None:
    """Serve the simulated markets over the vendors' HTTP APIs until stopped.

    POST /weather at the control URL lets faults blow: throttling, lost replies, lying lists, field_lie and more.
    """
    if about or weather:
        sys.stdout.write(_about() if about else _weather())
        return
    from agent.simulator.simulated_clock import ScaledClock

    ports, options = _of_markets(of_markets)
    _check_finite({"--speed": speed})
    clock, named = ScaledClock(_instant(start), speed), _named(climate)
    with _registry(clock, named, speed, disks) as processes:
        if rate_limits not in PACES:
            _fail(f"--rate-limits: {rate_limits!r} is neither lenient nor published")
        simulator = _simulator(clock, named, seed, hosts, processes, options, is_paced=PACES[rate_limits])
        asyncio.run(_serve(simulator, ports, control_port))


def _of_markets(given: "Mapping[str, Any]") -> "tuple[Mapping[str, int], Mapping[str, Mapping[str, Any]]]":
    """Return the given ports, and the given options by market and key."""
    ports, options = dict[str, int](), defaultdict[str, dict[str, Any]](dict)
    for market in simulate_options.of_markets():
        value = given.get(market.parameter)
        if value is None:
            continue
        if market.option is None:
            ports[market.market] = value
            continue
        if isinstance(value, float):
            _check_finite({market.flag: value})
        if market.option.choices and value not in market.option.choices:
            _fail(f"{market.flag}: {value!r} is none of {', '.join(market.option.choices)}")
        options[market.market][market.option.key] = value
    return ports, options


def _named(climate: str) -> "Climate":
    from agent.simulator import climate as climates
    from agent.simulator import climate_files

    try:
        return climate_files.named(climate)
    except climates.ClimateError as error:
        _fail(f"--climate: {error}")


def _simulator(
    clock: "Clock",
    climate: "Climate",
    seed: int,
    hosts: int | None,
    processes: "ProcessRegistry | None",
    options: "Mapping[str, Mapping[str, Any]]",
    *,
    is_paced: bool,
) -> "Simulator":
    """Return a simulator of every market that can be begun."""
    from agent.simulator.market_server import Simulator

    try:
        return Simulator.begun(
            climate,
            clock,
            seed=seed,
            start=clock.time(),
            hosts=hosts,
            is_paced=is_paced,
            processes=processes,
            options=options,
        )
    except ImportError as error:
        _fail(f"the package of a simulated market is broken: {error}; install it again or remove it")


@contextlib.contextmanager
def _registry(
    clock: "Clock", climate: "Climate", speed: float, disks: Path | None
) -> "Iterator[ProcessRegistry | None]":
    """Yield the registry of the containers' processes, if the climate has any. No process outlives the block."""
    from agent.simulator.processes import process_registry

    if not climate.processes:
        if disks is not None:
            _fail(f"--disks: the climate {climate.name!r} runs no processes and has no disks; leave --disks out")
        yield None
        return
    if not process_registry.LEAST_SPEED <= speed <= process_registry.MOST_SPEED:
        _fail(f"--speed: real processes run at 1 to 30, not at {speed:g}")
    try:
        registry = process_registry.ProcessRegistry(clock, speed=speed, below=disks)
    except OSError as error:
        _fail(f"--disks: {disks} cannot be made ({error.strerror}); name another folder")
    try:
        yield registry
    finally:
        registry.close()


def _about() -> str:
    from agent.simulator import recorded_figures, registered_simulators

    for record in registered_simulators.usable().values():
        if record.list_figures is not None:
            record.list_figures()
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
        tick_seconds = REAL_TICK_SECONDS if simulator.climate.processes else TICK_SECONDS
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
        _fail(f"a port is not free ({error}); name another port, or 0 for any free one")
    first_line: dict[str, str] = {}
    for name, side in simulator.sides.items():
        first_line |= {f"{name}_url": simulator.url(name), f"{name}_key": side.key}
    first_line["control_url"] = simulator.control_url
    sys.stdout.write(json.dumps(first_line) + "\n")
    sys.stdout.flush()


def _check_finite(figures: dict[str, float]) -> None:
    for name, figure in figures.items():
        if not math.isfinite(figure):
            _fail(f"{name}: {figure} is not a finite number")


def _instant(text: str | None) -> float | None:
    at = instants.instant("--start", text)
    return None if at is None else at.timestamp()


def _fail(sentence: str) -> NoReturn:
    exits.stop(exits.BAD_INPUT, [sentence])


simulate_options.add_to(simulate)


if __name__ == "__main__":
    typer.run(simulate)
