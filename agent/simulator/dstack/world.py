"""The server itself and the clouds behind it: runs, their machines, fleets. Events move it, and only with time.

1. The same climate, seed, start and calls give the same answers.
2. A cloud charges for a machine from its making until it has taken it back, whatever the server calls it meanwhile.
3. Nothing here knows the server's routes; times are epoch seconds, prices cents per hour.
"""

import math
import random
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from agent.simulator.climate import Climate, Strike
from agent.simulator.dstack import assumed_figures, interpolation, machine_kinds
from agent.simulator.dstack.climate_table import Dstack
from agent.simulator.dstack.cloud_clients import CloudClients
from agent.simulator.dstack.model import FINISHED, Kind, Machine, Refused, Run
from agent.simulator.event_queue import Timeline
from agent.simulator.instances import images
from agent.simulator.instances.billing import Rates, Till
from agent.simulator.instances.container_state import Container
from agent.simulator.instances.containers import Containers
from agent.simulator.market_model import Charge, Refusal

FIRST_NUMBER = 70_000_001  # apart from the numbers of the other markets
FIRST_MACHINE = 17_000_001
EMPTY = "main"
"""The project that every server has. It is empty while the operator's project has another name."""
FLEET = "gpubid"
FLEET_CONFIGURATION = {
    "type": "fleet",
    "name": FLEET,
    "nodes": {"min": 0, "max": 20},
    "idle_duration": 0,
    "spot_policy": "auto",
}
_HOUR = 3600.0
_LAST = {"done_by_runner": "done", "aborted_by_user": "terminated", "terminated_by_user": "terminated"}
"""The last status of a run by the reason of its job's end; else it has failed."""


class World:
    """The server of one operator, with one project that is used."""

    def __init__(self, climate: Climate, *, seed: int, start: float, ids: str = "") -> None:
        """Begin with the keys of all clouds and one empty fleet."""
        self.climate = climate
        self.start_time = start
        self._timeline = Timeline(start)
        account = random.Random(f"{seed}/dstack/account")
        self.project = EMPTY
        self.project_id, self.user_id = self._uuid(account), self._uuid(account)
        # Other ids than those of an earlier world, of the same project.
        self._ids = random.Random(ids) if ids else account
        self._dice = random.Random(f"{seed}/dstack/dice")
        self.kinds = list(machine_kinds.kinds())
        self.backends = sorted({kind.backend for kind in self.kinds})
        self.fleets: dict[str, dict[str, Any]] = {}
        self.make_fleet(FLEET_CONFIGURATION)
        self.runs: dict[str, Run] = {}
        self.machines: dict[int, Machine] = {}
        self.hosts = self.machines
        self.till = Till(0.0)
        self.idle_seconds = 0.0  # of a machine after its run: on the real server about 7 s, in which it may be reused
        self.gives_up = climate.table(Dstack).gives_up
        self.clients = CloudClients(random.Random(f"{seed}/dstack/clients"), climate.table(Dstack).no_client)
        self.containers: Containers[Run] = Containers(
            self._timeline,
            climate,
            f"{seed}/dstack",
            on_turn=self._turned,
            on_first_run=lambda _: None,
            on_failure=lambda run: self._end(run, "creating_container_error", run.pull_error or ""),
        )
        for strike in climate.strikes:
            self._timeline.put(start + strike.at_seconds, lambda strike=strike: self._strike(strike))  # type: ignore[misc]

    # --- time and looking -------------------------------------------------------------------------------------------
    @property
    def now(self) -> float:
        """Return the market's time, epoch seconds."""
        return self._timeline.now

    def advance_to(self, now: float) -> None:
        """Let everything due until `now` happen, in order. Going back is ignored."""
        self._timeline.advance_to(now)

    def live_contracts(self) -> list[Run]:
        """Return the runs whose machine is not back at its cloud, in order of creation."""
        return [run for run in self.runs.values() if run.ended is None]

    def free(self, kind: Kind) -> int:
        """Return how many machines of a type are free."""
        taken = sum(one.kind == kind and one.ended is None for one in self.machines.values())
        return max(0, self.climate.table(Dstack).capacity - taken)

    def charged_total(self) -> float:
        """Return every dollar that the clouds charged so far."""
        return self.till.charged(self.now)

    def charges(self, since: float, until: float) -> list[Charge]:
        """Return the charges on the UTC days that touch the span."""
        return self.till.charges(since, until, self.now)

    # --- the renter's calls ------------------------------------------------------------------------------------------
    def make_fleet(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        """Make a fleet, or change the fleet of that name."""
        made = {"uuid": self._uuid(self._ids), "created": self.now}
        fleet = self.fleets.setdefault(str(configuration.get("name")), made)
        fleet["configuration"] = dict(configuration)
        return fleet

    def submit(self, spec: Mapping[str, Any], name: str) -> Run:
        """Take an order, or raise Refused. Its machine is searched for afterwards."""
        named = [run for run in self.runs.values() if run.name == name and not run.is_deleted]
        if any(run.status not in FINISHED for run in named):
            raise Refused(
                400, "Failed to apply plan. Resource has been changed. Try again or use force apply.", "error"
            )
        for run in named:
            run.is_deleted = True
        order = spec["configuration"]
        run = Run(
            contract_id=FIRST_NUMBER + len(self.runs),
            uuid=self._uuid(self._ids),
            job_uuid=self._uuid(self._ids),
            name=name,
            spec={**spec, "run_name": name},
            label=(order.get("tags") or {}).get("gpubid") or name,
            created=self.now,
            processed=self.now,
            image=str(order.get("image") or ""),
            image_gb=images.size_gb(str(order.get("image") or "ubuntu")),
            env=interpolation.variables(order),
        )
        self.runs[run.uuid] = run
        self._after(run, assumed_figures.SUBMIT_SECONDS, self._provision)
        return run

    def stop(self, name: str, *, is_abort: bool = True) -> None:
        """End the active run of a name; without one nothing happens, nor is an end that goes on hastened."""
        for run in self.runs.values():
            if run.name != name or run.status in FINISHED | {"terminating"}:
                continue
            if is_abort or run.job_status != "running":
                self._end(run, "aborted_by_user" if is_abort else "terminated_by_user", "")
            else:
                self._interrupt(run)

    def delete(self, name: str) -> None:
        """Hide the finished runs of a name, or raise Refused."""
        named = [run for run in self.runs.values() if run.name == name and not run.is_deleted]
        if any(run.status not in FINISHED for run in named):
            raise Refused(400, f"Cannot delete active runs: ['{name}']", "error")
        for run in named:
            run.is_deleted = True

    # --- forced events -----------------------------------------------------------------------------------------------
    @property
    def credit(self) -> float:
        """Return nothing to spend: clouds are paid in arrears."""
        return 0.0

    def set_credit(self, dollars: float) -> None:
        """Do nothing: clouds are paid in arrears."""

    def set_host_offline(self, machine_id: int, until: float | None) -> None:
        """Silence a machine. The server still lists its run as running."""
        run = self._on(machine_id)
        if run.machine is None:
            return
        run.machine.offline_until, run.is_offline = math.inf if until is None else until, True
        self.containers.freeze(run)
        if until is not None:
            self._timeline.put(until, lambda: self.set_host_online(machine_id))

    def set_host_online(self, machine_id: int) -> None:
        """Let a silent machine answer again."""
        run = self._on(machine_id)
        if run.machine is not None and run.is_offline:
            run.machine.offline_until, run.is_offline = None, False
            self.containers.thaw(run)

    def set_host_gone(self, machine_id: int) -> None:
        """Let a machine die: its cloud takes it back at once, and the server notices."""
        run = self._on(machine_id)
        if run.machine is not None and run.machine.ended is None:
            self._take_back(run)
            run.machine.is_gone = True
            self._end(run, "instance_unreachable", "")

    def interrupt(self, machine_id: int) -> None:
        """Let a cloud take a spot machine back. A machine that is back already does not change."""
        run = self._on(machine_id)
        if run.machine is not None and run.machine.ended is None:
            self._take_back(run)
            self._end(run, "interrupted_by_no_capacity", "")

    def fail_pull(self, contract_id: int | None = None, *, probability: float = 1.0) -> None:
        """Let image pulls fail, of one run (by its number in the truth) or of all, until calm_pulls."""
        self.containers.fail(None if contract_id is None else self._numbered(contract_id), probability)

    def stick_loading(self, contract_id: int | None = None, *, probability: float = 1.0) -> None:
        """Let image pulls hang, of one run (by its number in the truth) or of all, until calm_pulls."""
        self.containers.stick(None if contract_id is None else self._numbered(contract_id), probability)

    def calm_pulls(self) -> None:
        """End fail_pull and stick_loading; a pull that hangs goes on."""
        self.containers.calm(self.live_contracts())

    # --- the life of a run -------------------------------------------------------------------------------------------
    def _provision(self, run: Run) -> None:
        if interpolation.is_refused(run.configuration):
            self._end(run, "terminated_by_server", "Secrets interpolation error: a secret is missing")
        elif (idle := self._idle(run.configuration)) is not None:
            self._reuse(run, idle)
        elif (kind := self._chosen(run.configuration)) is None:
            self._end(run, "failed_to_start_due_to_no_capacity", "No offers matching the run requirements")
        else:
            self._make_machine(run, kind)

    def _make_machine(self, run: Run, kind: Kind) -> None:
        number = len(self.machines)
        fleet = machine_kinds.fleet_of(run.configuration)
        machine = Machine(
            machine_id=FIRST_MACHINE + number,
            uuid=self._uuid(self._ids),
            name=f"{fleet}-{number}",
            number=number,
            fleet=fleet,
            kind=kind,
            created=self.now,
            inet_down=assumed_figures.INET_DOWN,
            run_name=run.name,
            job_uuid=run.job_uuid,
        )
        self.machines[machine.machine_id] = machine
        run.machine, run.holds_gpu = machine, True
        self._step(run, "provisioning", "provisioning")
        self._reckon(run)
        self._after(run, assumed_figures.BOOT_SECONDS, self._boot)
        if kind.is_spot and self.climate.demand.arrivals > 0:
            self._timeline.put(self.now + self._stay(), lambda: self.interrupt(machine.machine_id))

    def _reuse(self, run: Run, machine: Machine) -> None:
        """Place a run on the machine of one that has ended, which pays for it from now on."""
        self._close(self._on(machine.machine_id))
        machine.status, run.machine, run.holds_gpu = "busy", machine, True
        self._step(run, "provisioning", "provisioning")
        self._reckon(run)
        self._after(run, assumed_figures.SUBMIT_SECONDS, self._boot)

    def _boot(self, run: Run) -> None:
        if run.machine is not None and run.machine.ended is None:
            run.machine.status = "busy"
            self._step(run, "provisioning", "pulling")
            self.containers.begin(run)

    def _turned(self, run: Run) -> None:
        """Follow a container: the first process's end is the run's."""
        if run.status in FINISHED | {"terminating"}:
            return
        if run.container is Container.RUNNING:
            self._step(run, "running", "running")
        elif run.container is Container.EXITED:
            run.exit_status = 0
            self._end(run, "done_by_runner", "")
        self._reckon(run)

    def _end(self, run: Run, reason: str, message: str) -> None:
        if run.status in FINISHED | {"terminating"}:
            return
        run.reason, run.message = reason, message or None
        self._step(run, "terminating", "terminating")
        self._stop_container(run)

    def _interrupt(self, run: Run) -> None:
        """Give the work its signal. The runner kills it a little later, and only then its machine is let go."""
        run.reason, run.signalled = "terminated_by_user", self.now
        self._step(run, "terminating", "terminating")
        self.containers.warn(run)
        self._after(run, (assumed_figures.KILL_SECONDS, assumed_figures.KILL_SECONDS), self._stop_container)

    def _stop_container(self, run: Run) -> None:
        self.containers.halt(run)
        machine = run.machine
        if machine is not None and machine.status == "busy" and self.idle_seconds:
            machine.status = "idle"
            self._timeline.put(self.now + self.idle_seconds, lambda: self._end_idle(run, machine))
        elif machine is not None:
            machine.status = "terminating"
            self._let_go(run, machine)
        self._after(run, assumed_figures.FAILED_SECONDS, self._finish)

    def _end_idle(self, run: Run, machine: Machine) -> None:
        if machine.status == "idle":
            machine.status = "terminating"
            self._let_go(run, machine)

    def _finish(self, run: Run) -> None:
        last = _LAST.get(run.reason or "", "failed")
        run.finished = self.now
        self._step(run, last, "aborted" if run.reason == "aborted_by_user" else last)
        if run.machine is None:
            self._close(run)

    def _let_go(self, run: Run, machine: Machine) -> None:
        """Let a cloud take a machine back, or let the server give up, at once if it has no client of the cloud."""
        if machine.ended is None and machine.kind.backend not in self.clients.used(self.backends, self.now):
            self._call_terminated(machine)
            return
        if machine.ended is None and self._dice.random() < self.gives_up:
            self._timeline.put(self.now + assumed_figures.GIVES_UP_SECONDS, lambda: self._call_terminated(machine))
            return
        seconds = self._dice.uniform(*assumed_figures.END_SECONDS)

        def due() -> None:
            self._take_back(run)
            self._call_terminated(machine)

        self._timeline.put(self.now + seconds, due)

    def _call_terminated(self, machine: Machine) -> None:
        machine.status, machine.finished = "terminated", self.now

    def _take_back(self, run: Run) -> None:
        if run.machine is not None and run.machine.ended is None:
            run.machine.ended = self.now
            self._close(run)

    def _close(self, run: Run) -> None:
        if run.ended is None:
            self.containers.forget(run)
            run.holds_gpu = False
            self._reckon(run)
            run.ended = self.now
            self.till.close(run, self.now)

    # --- inside -----------------------------------------------------------------------------------------------------
    def offered(self, order: Mapping[str, Any]) -> list[Kind]:
        """Return the types that fit an order, the cheapest first."""
        fleet, clouds = self.fleets.get(machine_kinds.fleet_of(order)), self.clients.used(self.backends, self.now)
        clouds = [] if machine_kinds.is_full(fleet, self.machines.values()) else clouds
        return machine_kinds.fitting(self.kinds, order, clouds, fleet)

    def _chosen(self, order: Mapping[str, Any]) -> Kind | None:
        return next((kind for kind in self.offered(order) if self.free(kind)), None)

    def _idle(self, order: Mapping[str, Any]) -> Machine | None:
        fits, fleet = self.offered(order), machine_kinds.fleet_of(order)
        idle = (one for one in self.machines.values() if one.status == "idle" and one.fleet == fleet)
        return next((machine for machine in idle if machine.kind in fits), None)

    def _stay(self) -> float:
        """Return how long a cloud leaves a spot machine to its renter, seconds."""
        return self._dice.expovariate(assumed_figures.SPOT_LOSSES_PER_HOUR / _HOUR)

    def _step(self, run: Run, status: str, job: str) -> None:
        run.status, run.job_status, run.processed = status, job, self.now

    def _reckon(self, run: Run) -> None:
        is_charged = run.holds_gpu and run.machine is not None and run.machine.ended is None
        cents = run.machine.kind.cents if is_charged and run.machine is not None else 0
        self.till.rate(run, Rates(gpu=cents / 100), self.now)

    def _after(self, run: Run, seconds: tuple[float, float], act: Callable[[Run], None]) -> None:
        step = run.status

        def due() -> None:
            if run.status == step:
                act(run)

        self._timeline.put(self.now + self._dice.uniform(*seconds), due)

    def _strike(self, strike: Strike) -> None:
        """Let one of our machines fail as the climate says; a raised price means nothing here."""
        held = [run.machine.machine_id for run in self.live_contracts() if run.machine is not None and run.holds_gpu]
        if not held or strike.fault == "price_rise":
            return
        machine_id = self._dice.choice(held)
        if strike.fault == "host_gone":
            self.set_host_gone(machine_id)
        else:
            self.set_host_offline(machine_id, self.now + strike.seconds)

    def _on(self, machine_id: int) -> Run:
        for run in reversed(self.runs.values()):
            if run.machine is not None and run.machine.machine_id == machine_id:
                return run
        raise Refusal(Refusal.NO_SUCH_HOST, f"There is no host {machine_id}.")

    def _numbered(self, contract_id: int) -> Run:
        for run in self.live_contracts():
            if run.contract_id == contract_id:
                return run
        raise Refusal(Refusal.NO_SUCH_CONTRACT, f"There is no run of number {contract_id}.")

    def _uuid(self, dice: random.Random) -> str:
        return str(uuid.UUID(int=dice.getrandbits(128), version=4))
