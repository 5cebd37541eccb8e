"""The program of a simulated container, which its renter sets by variables of its environment.

A container with real processes ignores these variables.

SIM_READY_AFTER: seconds from its start until it is ready ("never": it never is); 15 without it.
SIM_READY_LINE: the line that it prints then; "ready" without it.
SIM_DONE_AFTER: seconds of running, over all of its stretches, until its work is done and it ends; without it, never.
SIM_DONE_LINE: the line that it prints then; "done" without it.
SIM_IDLE_AFTER: seconds from its start until its GPUs do nothing more; without it, never.
SIM_EXIT_AFTER: seconds from each start until it ends without a word; without it, never.
SIM_SILENT_AFTER: seconds from each start until its ports close while it runs on; without it, never.
SIM_SILENT_ONCE_AFTER: seconds of running, over all of its stretches, until its ports close; its next start opens them.
SIM_HANGS_AFTER: seconds from each start until its work hangs: its GPUs stay busy, and it prints nothing more; without
it, never.
SIM_HANGS_ONCE_AFTER: seconds of running, over all of its stretches, until its work hangs; its next start goes on.
SIM_LEAKS_FOR: seconds from each start until its memory is nearly full. Its answers take longer and longer, then two
seconds, and twice as long in each further minute. After twice that time it ends without a word. Without it, never.
SIM_FLAPS_EVERY: its ports are open for this many seconds, then closed for as many, and so on; without it, open.
"""

import dataclasses
import math
from collections.abc import Mapping

from agent.simulator.instances.container_state import Container
from agent.simulator.instances.rented import Rented

READY_AFTER = 15.0
FULL_ANSWER_SECONDS = 2.0
"""How long the answer of a service takes whose memory is nearly full."""
_ROUNDING = 0.001


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """The program of one container; times are seconds."""

    ready_after: float
    done_after: float
    exit_after: float
    ready_line: str
    done_line: str


def of(contract: Rented) -> Program:
    """Return the program of a contract's container."""
    env = contract.env
    return Program(
        _seconds(env, "SIM_READY_AFTER", READY_AFTER),
        _seconds(env, "SIM_DONE_AFTER", math.inf),
        min(_seconds(env, "SIM_EXIT_AFTER", math.inf), 2 * _seconds(env, "SIM_LEAKS_FOR", math.inf)),
        env.get("SIM_READY_LINE", "ready")[:200],
        env.get("SIM_DONE_LINE", "done")[:200],
    )


def seconds_to_end(contract: Rented) -> float:
    """Return how long a container that starts now runs until it ends by itself; inf for never."""
    if contract.process is not None:
        return math.inf
    program = of(contract)
    to_done = program.done_after - contract.worked
    return max(min(program.exit_after, to_done if to_done <= seconds_to_hang(contract) else math.inf), 0.0)


def seconds_to_hang(contract: Rented, worked: float | None = None) -> float:
    """Return how long after its start its work hangs; inf for never. `worked` is the running before that start."""
    once = _seconds(contract.env, "SIM_HANGS_ONCE_AFTER", math.inf) - (contract.worked if worked is None else worked)
    return min(_seconds(contract.env, "SIM_HANGS_AFTER", math.inf), once if once >= 0.0 else math.inf)


def worked_before(contract: Rented, start: float, end: float) -> float:
    """Return the seconds of running before the last stretch, which lasted from `start` to `end`."""
    return contract.worked - (end - start) if contract.running_since is None else contract.worked


def is_ready(contract: Rented, now: float) -> bool:
    """Return whether its ports are open."""
    is_running = contract.container is Container.RUNNING and contract.holds_gpu and not contract.is_offline
    since = contract.running_since
    return is_running and since is not None and now - since >= of(contract).ready_after and _is_live(contract, now)


def _is_live(contract: Rented, now: float) -> bool:
    """Return whether a service that was ready answers."""
    ran = now - (contract.running_since or now)
    once = _seconds(contract.env, "SIM_SILENT_ONCE_AFTER", math.inf) - contract.worked
    if ran >= _seconds(contract.env, "SIM_SILENT_AFTER", math.inf) or 0.0 <= once <= ran:
        return False
    turn = _seconds(contract.env, "SIM_FLAPS_EVERY", math.inf)
    return turn in {0.0, math.inf} or int(ran // turn) % 2 == 0


def answers_after(contract: Rented, now: float) -> float:
    """Return how many real seconds its service takes to answer."""
    full_in = _seconds(contract.env, "SIM_LEAKS_FOR", math.inf) - (now - (contract.running_since or now))
    return FULL_ANSWER_SECONDS * 2.0 ** max(min(-full_in / 60, 5.0), -20.0) if full_in < math.inf else 0.0


def gpu_use(contract: Rented, now: float) -> float:
    """Return how busy its GPUs are, in per cent."""
    if contract.process is not None:
        return 97.0 if contract.process.is_busy else 0.0
    since = contract.running_since
    idle_after = _seconds(contract.env, "SIM_IDLE_AFTER", math.inf)
    is_busy = since is not None and of(contract).ready_after < math.inf and now - since < idle_after
    return 97.0 if is_busy else 0.0


def lines(contract: Rented, start: float, end: float) -> list[tuple[float, str]]:
    """Return its own lines printed between the start of a stretch and `end`, with their times."""
    program = of(contract)
    printed = []
    if end - start >= program.ready_after:
        printed.append((start + program.ready_after, program.ready_line))
    before = worked_before(contract, start, end)
    done_at = start + program.done_after - before
    if done_at <= end + _ROUNDING and program.done_after - before <= seconds_to_hang(contract, before):
        printed.append((done_at, program.done_line))
    return printed


def _seconds(env: Mapping[str, str], name: str, otherwise: float) -> float:
    try:
        seconds = float(env.get(name, otherwise))
    except ValueError:
        return math.inf
    return seconds if seconds >= 0 else math.inf
