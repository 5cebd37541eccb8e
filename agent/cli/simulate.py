"""`gpubid simulate`: the simulated market as a program of its own, for tests, rehearsals and the vendor's own tools.

One JSON line on stdout, {"vast_url": ..., "control_url": ...}, then it serves until SIGTERM or SIGINT and ends with 0.
Bad input ends with 2 and a sentence on stderr.
"""

import asyncio
import datetime as dt
import json
import math
import signal
import sys
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from agent.simulator.server import Simulator

BAD_INPUT = 2


def simulate(  # noqa: PLR0913 - one parameter per option
    climate: Annotated[str, typer.Option(help="The market's name: a file of agent/simulator/climates.")] = "calm",
    seed: Annotated[int, typer.Option(help="Same seed, same market, same answers.")] = 7,
    vast_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the vendor's API; 0 takes any.")] = 0,
    control_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the control API; 0 takes any.")] = 0,
    speed: Annotated[float, typer.Option(min=0.0, help="Simulated seconds a second; 0 moves only when told.")] = 1.0,
    hosts: Annotated[int | None, typer.Option(min=1, max=100_000, help="Hosts; the climate's own by default.")] = None,
    credit: Annotated[float | None, typer.Option(help="Dollars of the account; the climate's own by default.")] = None,
    start: Annotated[str | None, typer.Option(metavar="ISO", help="First instant, UTC; now by default.")] = None,
    rate_limits: Annotated[str, typer.Option(help="lenient (the daily quota of search rows only) or published.")] = (
        "lenient"
    ),
    about: Annotated[bool, typer.Option("--about", help="Say which figures are recorded, which assumed.")] = False,
) -> None:
    """Serve a simulated market over the vendor's HTTP API until stopped."""
    if about:
        from agent.simulator import figures

        sys.stdout.write(figures.about())
        return
    from agent.simulator import climate as climates
    from agent.simulator import gate
    from agent.simulator.clock import ScaledClock
    from agent.simulator.server import Simulator
    from agent.simulator.world import World

    for name, figure in (("--speed", speed), ("--credit", credit or 0.0)):
        if not math.isfinite(figure):
            _fail(f"{name}: {figure} is no number to reckon with.")
    clock = ScaledClock(_instant(start), speed)
    gates = {"lenient": gate.Gate, "published": gate.published}
    if rate_limits not in gates:
        _fail(f"--rate-limits: {rate_limits!r} is neither lenient nor published.")
    try:
        named = climates.named(climate)
    except climates.ClimateError as error:
        _fail(str(error))
    world = World(named, seed=seed, start=clock.time(), hosts=hosts, credit=credit)
    simulator = Simulator(world, clock, seed=seed, gate=gates[rate_limits]())
    try:
        asyncio.run(_serve(simulator, vast_port, control_port))
    except OSError as error:
        _fail(f"The port is not free: {error}.")


async def _serve(simulator: "Simulator", vast_port: int, control_port: int) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await simulator.start(vast_port, control_port)
    urls = {"vast_url": simulator.vast_url, "control_url": simulator.control_url}
    sys.stdout.write(json.dumps(urls) + "\n")
    sys.stdout.flush()
    await stopping.wait()
    await simulator.stop()


def _instant(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        instant = dt.datetime.fromisoformat(text)
    except ValueError:
        _fail(f"--start: {text!r} is not an ISO date such as 2026-11-21T00:00:00Z.")
    return (instant if instant.tzinfo is not None else instant.replace(tzinfo=dt.UTC)).timestamp()


def _fail(sentence: str) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(BAD_INPUT)


if __name__ == "__main__":
    typer.run(simulate)
