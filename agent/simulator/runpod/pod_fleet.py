"""Our pods on their GPUs: their costs, and the effect of a lost GPU or an empty balance.

A pod that is outbid gets SIGTERM, and SIGKILL five seconds later. It is then EXITED: its container disk is gone, its
volume bills at the stopped rate, and nothing starts it again. A container that ends is restarted; the pod stays and
bills.
"""

import random

from agent.simulator.climate import Climate
from agent.simulator.event_queue import Timeline
from agent.simulator.instances import images
from agent.simulator.instances.billing import Rates, Till
from agent.simulator.instances.container_state import Container
from agent.simulator.instances.containers import Containers
from agent.simulator.runpod import assumed_figures
from agent.simulator.runpod.climate_table import Runpod
from agent.simulator.runpod.model import Change, Guest, Host, Pod, Refused
from agent.simulator.runpod.stock import Holder, Stock
from agent.simulator.vast import truth

_HOUR = 3600.0
FIRST_NUMBER = 70_000_001  # apart from the contract numbers of the other market


class Fleet:
    """Keeps the pods of one account."""

    def __init__(self, timeline: Timeline, climate: Climate, stock: Stock, *, seed: str, credit: float) -> None:
        """Start with a balance and without pods."""
        self._timeline = timeline
        self._climate = climate
        self._stock = stock
        self._dice = random.Random(f"{seed}/fleet")
        self.till = Till(credit, span=_HOUR)
        self.pods: dict[str, Pod] = {}
        self._ids: list[str] = []
        self._worked: dict[str, float] = {}  # by network volume: the seconds of work that its files hold
        self.containers: Containers[Pod] = Containers(
            timeline,
            climate,
            seed,
            on_turn=self._turned,
            on_first_run=lambda _: None,
            on_failure=self._pull_failed,
        )
        timeline.put(timeline.now + assumed_figures.TICK_SECONDS, self._tick)

    def live(self) -> list[Pod]:
        """Return the pods that exist now, in order of creation."""
        return [pod for pod in self.pods.values() if pod.ended is None]

    def pod_id(self, number: int) -> str:
        """Return the id of the pod of a number."""
        return self._ids[number - FIRST_NUMBER]

    def require_balance(self, rate: float, *, is_resumed: bool = False) -> None:
        """Raise Refused if the balance does not pay for an hour of `rate` ($/h), or that exceeds the spending limit."""
        needed, has = rate * assumed_figures.DEPLOY_HOURS, self.till.credit(self._timeline.now)
        if has < needed:
            verb = "resume" if is_resumed else "deploy"
            raise Refused(
                Refused.BALANCE,
                f"Insufficient balance to {verb} this on-demand pod. "
                f"You need at least ${needed:.2f} (current: ${has:.2f}, deficit: ${needed - has:.2f}).",
            )
        if rate + self.gpu_rate() > assumed_figures.SPEND_LIMIT:
            raise Refused(Refused.BALANCE, "This would exceed the spend limit of your account.")

    def gpu_rate(self) -> float:
        """Return $/h of all GPUs that are held."""
        return sum(self.rates(pod).gpu for pod in self.live())

    def disk_rate(self) -> float:
        """Return $/h of all disks."""
        return sum(self.rates(pod).disk for pod in self.live())

    def rates(self, pod: Pod) -> Rates:
        """Return the rates of a pod now. The climate decides whether a pod on a silent host costs anything."""
        is_free = pod.is_offline and not self._climate.table(Runpod).bills_silent_hosts
        if is_free or pod.ended is not None:
            return Rates()
        if not pod.holds_gpu:
            return Rates(disk=pod.volume_gb * assumed_figures.VOLUME_STOPPED / assumed_figures.MONTH_HOURS)
        disks = pod.disk_gb * assumed_figures.CONTAINER_DISK + pod.volume_gb * assumed_figures.VOLUME_RUNNING
        return Rates(gpu=pod.rate, disk=disks / assumed_figures.MONTH_HOURS)

    # --- a pod's life -----------------------------------------------------------------------------------------------
    def open(self, pod: Pod) -> None:
        """Add a new pod that has its GPUs."""
        pod.contract_id = FIRST_NUMBER + len(self.pods)
        self.pods[pod.pod_id] = pod
        self._ids.append(pod.pod_id)
        self._load(pod)
        self._hold(pod)

    def start(self, pod: Pod) -> None:
        """Give a stopped pod its GPUs again."""
        pod.holds_gpu = True
        self._load(pod)
        self._note(pod, Change.RENTED)
        self._hold(pod)

    def restart(self, pod: Pod) -> None:
        """Restart its container in place."""
        self.containers.restart(pod, Container.REBOOTING)

    def remake(self, pod: Pod, disk_gb: int | None) -> None:
        """Make its container anew, perhaps from another image."""
        pod.disk_gb = disk_gb or pod.disk_gb
        size = images.size_gb(pod.image)
        if size != pod.image_gb:
            pod.image_gb, pod.pulled_share = size, 0.0
        if pod.holds_gpu:
            self.containers.halt(pod)
            self.containers.wipe(pod)
            self.containers.begin(pod)
        self._reckon(pod)

    def exit(self, pod: Pod, change: Change) -> None:
        """Take its GPUs away, at once."""
        self._let_go(pod)
        self._note(pod, change)
        self.containers.halt(pod)
        self._save(pod)
        self.containers.wipe(pod)
        self._reckon(pod)

    def end(self, pod: Pod, change: Change, cause: str) -> None:
        """End it for good."""
        if pod.ended is not None:
            return
        self._let_go(pod)
        self._note(pod, change)
        self.containers.forget(pod)
        self._save(pod)
        pod.ended, pod.end_cause = self._timeline.now, cause
        self.till.close(pod, self._timeline.now)

    def displace(self, holders: list[Holder]) -> None:
        """Take their GPUs for another renter. Guests leave; our pods get SIGTERM and are killed five seconds later."""
        for holder in holders:
            self._stock.remove(holder)
            if isinstance(holder, Guest):
                continue
            holder.is_leaving = True
            self.containers.warn(holder)
            held_since = holder.changed
            self._timeline.put(
                self._timeline.now + (self.containers.notice_seconds or assumed_figures.KILL_SECONDS),
                lambda pod=holder, since=held_since: self._kill(pod, since),  # type: ignore[misc]
            )

    def fall_silent(self, host: Host) -> None:
        """Freeze the pods of a host."""
        for pod in self._on(host):
            pod.is_offline = True
            self.containers.freeze(pod)
            self._reckon(pod)

    def speak(self, host: Host) -> None:
        """Let the pods of a host continue."""
        for pod in self._on(host):
            pod.is_offline = False
            self.containers.thaw(pod)
            self._reckon(pod)

    def log_lines(self, pod: Pod) -> list[str]:
        """Return the lines that its container printed."""
        return truth.log_lines(pod, self._timeline.now, is_stamped=True)

    # --- inside -----------------------------------------------------------------------------------------------------
    def _on(self, host: Host) -> list[Pod]:
        return [pod for pod in self.live() if pod.host is host]

    def _hold(self, pod: Pod) -> None:
        pod.is_leaving = False
        self._stock.add(pod)
        self.containers.begin(pod)
        self._reckon(pod)

    def _load(self, pod: Pod) -> None:
        """Continue the work of a pod from the files of its network volume."""
        if pod.terms.network_volume is not None:
            pod.worked = self._worked.get(pod.terms.network_volume, pod.worked)

    def _save(self, pod: Pod) -> None:
        if (volume := pod.terms.network_volume) is not None:
            self._worked[volume] = max(self._worked.get(volume, 0.0), pod.worked)

    def _let_go(self, pod: Pod) -> None:
        self._stock.remove(pod)
        pod.holds_gpu = pod.is_leaving = False

    def _kill(self, pod: Pod, since: float) -> None:
        if pod.is_leaving and pod.changed == since and pod.ended is None:
            self.exit(pod, Change.OUTBID)

    def _note(self, pod: Pod, change: Change) -> None:
        pod.change, pod.changed = change, self._timeline.now

    def _reckon(self, pod: Pod) -> None:
        self.till.rate(pod, self.rates(pod), self._timeline.now)

    def _turned(self, pod: Pod) -> None:
        """Restart a container that ended by itself."""
        if pod.container is Container.EXITED and pod.holds_gpu:
            at = self._timeline.now + self._dice.uniform(*assumed_figures.RESTART_SECONDS)
            self._timeline.put(at, lambda: self._revive(pod))

    def _revive(self, pod: Pod) -> None:
        # A real process that ended after its notice is not started again. A simulated one gets no notice.
        is_leaving = pod.process is not None and pod.is_leaving
        if pod.container is Container.EXITED and pod.holds_gpu and pod.ended is None and not is_leaving:
            self.containers.restart(pod, Container.REBOOTING)

    def _pull_failed(self, pod: Pod) -> None:
        at = self._timeline.now + self._dice.uniform(*assumed_figures.IMAGE_ERROR_SECONDS)
        self._timeline.put(at, lambda: self._give_up(pod))

    def _give_up(self, pod: Pod) -> None:
        if pod.container is Container.CREATED and pod.holds_gpu and pod.ended is None:
            self.exit(pod, Change.EXITED)

    def _tick(self) -> None:
        """Check the balance, every five minutes."""
        now = self._timeline.now
        credit = self.till.credit(now)
        if self._climate.table(Runpod).low_balance == "stop":
            left_hours = assumed_figures.LAST_MINUTES / 60.0
            is_empty = credit < (self.gpu_rate() + self.disk_rate()) * left_hours
        else:
            is_empty = credit <= 0.0
        if is_empty:
            for pod in self.live():
                self._cut_off(pod)
        self._timeline.put(now + assumed_figures.TICK_SECONDS, self._tick)

    def _cut_off(self, pod: Pod) -> None:
        is_kept = pod.terms.network_volume is not None or self._climate.table(Runpod).low_balance == "stop"
        if not is_kept:
            self.end(pod, Change.EXITED, "balance")
        elif pod.holds_gpu:
            self.exit(pod, Change.EXITED)
