"""Containers: pulling the image, running, exiting and rebooting on GPUs that a contract holds.

1. The pulled part of an image stays on the disk. A pull continues where it was cut off, and a later start needs none.
2. Each turn of a container cancels its earlier plans, so a plan never runs in another state than its own.
3. Real processes, where a climate has them, follow the container. They run while it is RUNNING, and during the notice
   of an eviction; the host's silence does not stop them. A container whose first process ended has exited.
"""

import math
import random
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from agent.simulator import recorded_figures
from agent.simulator.climate import Climate
from agent.simulator.event_queue import Timeline
from agent.simulator.instances import images, program
from agent.simulator.instances.container_state import Container
from agent.simulator.instances.rented import Rented

_HOUR = 3600.0
R = TypeVar("R", bound=Rented)


class Containers(Generic[R]):
    """Run the containers of all contracts. The listeners hear of every turn, first run and failed pull."""

    def __init__(
        self,
        timeline: Timeline,
        climate: Climate,
        seed: str,
        *,
        on_turn: Callable[[R], None],
        on_first_run: Callable[[R], None],
        on_failure: Callable[[R], None],
    ) -> None:
        """Start without containers."""
        self._timeline = timeline
        self._climate = climate
        self._seed = seed
        self._on_turn = on_turn
        self._on_first_run = on_first_run
        self._on_failure = on_failure
        self._turns: dict[int, int] = {}
        self._rngs: dict[int, random.Random] = {}
        self._pulls: dict[int, images.Pull] = {}
        self._began: dict[int, float] = {}  # pulls under way
        self._failing: dict[int | None, float] = {}
        self._sticking: dict[int | None, float] = {}
        self._launch: Callable[[R], None] | None = None
        self._launched: dict[int, R] = {}
        self.gpu_lies: dict[int, Mapping[str, Any]] = {}  # what drivers of real processes show, by fault
        self.notice_seconds = 0.0  # between SIGTERM and SIGKILL of real processes that are evicted

    def run_processes(self, launch: Callable[[R], None]) -> None:
        """Run the real processes of containers from now on. `launch` starts the processes of one container."""
        self._launch = launch
        self._timeline.on_move = self._attend

    def rng(self, contract: R) -> random.Random:
        """Return the contract's own stream."""
        key = contract.contract_id
        if key not in self._rngs:
            self._rngs[key] = random.Random(f"{self._seed}/contract/{key}")
        return self._rngs[key]

    # --- turns ------------------------------------------------------------------------------------------------------
    def begin(self, contract: R) -> None:
        """Start on GPUs that were just given."""
        if contract.container in {Container.NONE, Container.CREATED}:
            contract.container = Container.NONE
            self._plan(contract, _drawn(self.rng(contract), recorded_figures.REPORT_SECONDS), self._load)
        else:
            self._load(contract)

    def halt(self, contract: R, *, is_evicted: bool = False) -> None:
        """Stop a container whose GPUs were taken away. Its disk stays as it is."""
        self._stop_process(contract, self.notice_seconds if is_evicted else 0.0)
        self._note_progress(contract)
        self._void(contract)
        self._stop_clock(contract)
        contract.loading_until = None
        contract.is_stuck = False
        if contract.container is not Container.NONE:
            contract.container = Container.EXITED

    def forget(self, contract: R) -> None:
        """Drop everything planned for a contract that ended."""
        self.halt(contract)
        self._pulls.pop(contract.contract_id, None)
        self._rngs.pop(contract.contract_id, None)
        self._launched.pop(contract.contract_id, None)
        if contract.process is not None:
            contract.process.remove()

    def warn(self, contract: R) -> None:
        """Warn its real processes that they will be killed."""
        if contract.process is not None:
            contract.process.terminate()

    def wipe(self, contract: R) -> None:
        """Empty its disk: the container will be made anew."""
        if contract.process is not None:
            contract.process.wipe()

    def freeze(self, contract: R) -> None:
        """Cancel its plans while the host does not answer."""
        self._note_progress(contract)
        self._void(contract)
        contract.loading_until = None

    def thaw(self, contract: R) -> None:
        """Continue where the host fell silent."""
        if not contract.holds_gpu:
            return
        if contract.container is Container.RUNNING:
            self._plan_exit(contract)
        elif contract.container in {Container.REBOOTING, Container.RECYCLING, Container.EXITED}:
            self._plan(contract, _drawn(self.rng(contract), recorded_figures.RESTART_SECONDS), self._run)
        else:
            self.begin(contract)

    def restart(self, contract: R, through: Container) -> None:
        """Reboot or recycle, keeping the GPUs; nothing happens to a container that has none or whose host is silent."""
        is_there = contract.holds_gpu and not contract.is_offline
        if not is_there or contract.container not in {Container.RUNNING, Container.EXITED}:
            return
        contract.container = through
        self._stop_process(contract, 0.0)
        if through is Container.RECYCLING:
            self.wipe(contract)
        self._stop_clock(contract)
        self._plan(contract, _drawn(self.rng(contract), recorded_figures.RESTART_SECONDS), self._run)
        self._on_turn(contract)

    def exit(self, contract: R, restarts_after: float | None) -> None:
        """End by itself; the contract keeps its GPUs."""
        if contract.container is not Container.RUNNING or contract.is_offline:
            return
        contract.container = Container.EXITED
        self._stop_process(contract, 0.0)
        self._stop_clock(contract)
        self._void(contract)
        if restarts_after is not None:
            self._plan(contract, restarts_after, self._run)
        self._on_turn(contract)

    # --- pulls ------------------------------------------------------------------------------------------------------
    def is_pulling(self, contract: R) -> bool:
        """Return whether bytes of the image come in now."""
        return contract.contract_id in self._began

    def pull_gb_per_hour(self, contract: R) -> float:
        """Return the speed of a pull under way, GB/h."""
        return contract.image_gb / self._pulls[contract.contract_id].seconds * _HOUR

    def fail(self, contract: R | None, probability: float) -> None:
        """Make the pulls of one contract, or of all, fail. The pull of a named contract fails at once."""
        self._failing[contract.contract_id if contract else None] = probability
        if contract is not None and contract.container is Container.LOADING and not contract.is_ready:
            self._break(contract)

    def stick(self, contract: R | None, probability: float) -> None:
        """Make the pulls of one contract, or of all, hang. The pull of a named contract hangs at once."""
        self._sticking[contract.contract_id if contract else None] = probability
        if contract is not None and contract.container is Container.LOADING and not contract.is_ready:
            self._hang(contract)

    def calm(self, stuck: list[R]) -> None:
        """End `fail` and `stick`. The pulls of `stuck` go on."""
        self._failing.clear()
        self._sticking.clear()
        for contract in stuck:
            if contract.is_stuck:
                contract.is_stuck = False
                self._load(contract)

    def _load(self, contract: R) -> None:
        contract.container = Container.LOADING
        rng = self.rng(contract)
        if contract.is_ready:
            self._plan_until(contract, _drawn(rng, recorded_figures.RESTART_SECONDS), self._run)
        elif self._is_hit(self._sticking, contract):
            self._hang(contract)
        else:
            self._pull(contract)
        self._on_turn(contract)

    def _pull(self, contract: R) -> None:
        key = contract.contract_id
        if key not in self._pulls:
            failure = self._climate.pull_failure_probability
            self._pulls[key] = images.plan(self.rng(contract), contract.host, contract.image_gb, failure)
        pull = self._pulls[key]
        if self._is_hit(self._failing, contract):
            pull.breaks_at = contract.pulled_share + (1.0 - contract.pulled_share) / 3
        self._began[key] = self._timeline.now
        if pull.breaks_at is not None and pull.breaks_at > contract.pulled_share:
            self._plan_until(contract, (pull.breaks_at - contract.pulled_share) * pull.seconds, self._break)
        else:
            self._plan_until(contract, (1.0 - contract.pulled_share) * pull.seconds, self._finish)

    def _finish(self, contract: R) -> None:
        self._note_progress(contract)
        contract.pulled_share = 1.0
        self._run(contract)

    def _break(self, contract: R) -> None:
        self._note_progress(contract)
        self._void(contract)
        contract.container = Container.CREATED
        contract.loading_until = None
        contract.pull_error = "Error response from daemon: failed to register layer: unexpected EOF"
        self._pulls.pop(contract.contract_id, None)
        self._on_failure(contract)

    def _hang(self, contract: R) -> None:
        self._note_progress(contract)
        self._void(contract)
        contract.is_stuck = True
        contract.loading_until = None
        self._on_turn(contract)

    def _note_progress(self, contract: R) -> None:
        began = self._began.pop(contract.contract_id, None)
        if began is not None:
            done = (self._timeline.now - began) / self._pulls[contract.contract_id].seconds
            contract.pulled_share = min(contract.pulled_share + done, 0.999)

    def _is_hit(self, rules: dict[int | None, float], contract: R) -> bool:
        probability = rules.get(contract.contract_id, rules.get(None))
        return probability is not None and (probability >= 1.0 or self.rng(contract).random() < probability)

    # --- running ----------------------------------------------------------------------------------------------------
    def _run(self, contract: R) -> None:
        contract.container = Container.RUNNING
        contract.running_since = self._timeline.now
        contract.loading_until = None
        contract.pull_error = None
        if self._launch is not None:
            self._launch(contract)
            self._launched[contract.contract_id] = contract
        self._plan_exit(contract)
        if contract.first_started is None:
            contract.first_started = self._timeline.now
            self._on_first_run(contract)
        self._on_turn(contract)

    def _plan_exit(self, contract: R) -> None:
        """Plan the end of the container: the end of its program, or an earlier exit drawn from the climate."""
        per_hour = self._climate.container_exits_per_hour
        ends = program.seconds_to_end(contract)
        if per_hour > 0:
            rng = self.rng(contract)
            seconds, again = rng.expovariate(per_hour / _HOUR), rng.uniform(10.0, 60.0)
            if seconds < ends:
                self._plan(contract, seconds, lambda exited: self.exit(exited, again))
                return
        if math.isfinite(ends):
            self._plan(contract, ends, lambda exited: self.exit(exited, None))

    def _stop_clock(self, contract: R) -> None:
        if contract.running_since is not None:
            contract.ran = (contract.running_since, self._timeline.now)
            contract.worked += self._timeline.now - contract.running_since
        contract.running_since = None

    def _stop_process(self, contract: R, notice: float) -> None:
        """Kill its real processes, after a notice if there is one."""
        process = contract.process
        if process is None:
            return
        self._launched.pop(contract.contract_id, None)
        if notice <= 0:
            process.kill()
            return
        process.terminate()
        starts = process.starts

        def due() -> None:
            if process.starts == starts:
                process.kill()

        self._timeline.put(self._timeline.now + notice, due)

    def _attend(self) -> None:
        """Let the containers exit whose first process has ended."""
        for contract in list(self._launched.values()):
            if contract.process is not None and contract.process.has_ended:
                self.exit(contract, None)

    # --- plans ------------------------------------------------------------------------------------------------------
    def _plan_until(self, contract: R, seconds: float, act: Callable[[R], None]) -> None:
        contract.loading_until = self._timeline.now + seconds
        self._plan(contract, seconds, act)

    def _plan(self, contract: R, seconds: float, act: Callable[[R], None]) -> None:
        """Call `act` with the contract after `seconds`, unless it takes another turn before."""
        turn = self._void(contract)

        def due() -> None:
            if self._turns.get(contract.contract_id) == turn and contract.ended is None:
                act(contract)

        self._timeline.put(self._timeline.now + seconds, due)

    def _void(self, contract: R) -> int:
        turn = self._turns[contract.contract_id] = self._turns.get(contract.contract_id, 0) + 1
        return turn


def _drawn(rng: random.Random, bounds: tuple[float, float]) -> float:
    return rng.uniform(*bounds)
