"""The market itself: hosts, other renters, pods and the balance. Events move it, and only when time is moved.

1. The same climate, seed, start and calls give the same answers.
2. Time moves only in advance_to.
3. Nothing here knows the vendor's field names or HTTP; money is dollars, times are epoch seconds.
"""

import math
import random
from collections.abc import Hashable, Sequence

from agent.simulator import demand
from agent.simulator.climate import Climate, Strike
from agent.simulator.event_queue import Timeline
from agent.simulator.instances import images
from agent.simulator.market_model import Charge, Refusal
from agent.simulator.runpod import assumed_figures, hosts, prices, sales_modes
from agent.simulator.runpod.climate_table import Runpod
from agent.simulator.runpod.model import Change, Guest, Host, Pod, Refused, Terms
from agent.simulator.runpod.models import Cloud, GpuType
from agent.simulator.runpod.network_volumes import NetworkVolumes
from agent.simulator.runpod.other_renters import Crowd
from agent.simulator.runpod.pod_fleet import Fleet
from agent.simulator.runpod.sales_modes import Mode
from agent.simulator.runpod.stock import Stock

NO_STOCK = (
    "There are no longer any instances available with the requested specifications. Please refresh and try again."
)
NO_SPOT_STOCK = "There are no instances available with the request specifications. Please try again later."
FULL_HOST = "There are not enough free GPUs on the host machine to start this pod."
OUTBID = "The bid is too low: the pod would be outbid at once."
FIRST_RIVAL = 1_000_001  # rivals put there by hand, apart from those of the other market


class World:
    """The market, for one account."""

    def __init__(
        self, climate: Climate, *, seed: int, start: float, credit: float | None = None, ids: str = ""
    ) -> None:
        """Draw the hosts and start at `start` (epoch seconds). `credit` overrides the climate's."""
        self.climate = climate
        self.mode = sales_modes.parse(climate.table(Runpod).mode)
        self.start_time = start
        self._timeline = Timeline(start)
        self._account = random.Random(f"{seed}/runpod/account")
        self.account_id = "user_" + hosts.token(self._account, 16)
        if ids:
            # Other pods than those of an earlier world, of the same account.
            self._account = random.Random(ids)
        self.hosts: dict[int, Host] = hosts.draw(random.Random(f"{seed}/runpod/hosts"), climate.table(Runpod).scale)
        self._hosts_of: dict[str, list[Host]] = {}
        for host in self.hosts.values():
            self._hosts_of.setdefault(host.gpu.type_id, []).append(host)
        self.stock = Stock(self.hosts)
        self.fleet = Fleet(
            self._timeline,
            climate,
            self.stock,
            seed=f"{seed}/runpod",
            credit=climate.table(Runpod).credit if credit is None else credit,
        )
        self.containers = self.fleet.containers
        self._silences = 0
        self.rivals: dict[int, Guest] = {}
        self._rival_count = 0
        self.volumes = NetworkVolumes(self._timeline, f"{seed}/runpod", lambda paid: self.fleet.till.grant(-paid))
        self._crowd = Crowd(
            self._timeline,
            climate,
            self.stock,
            self.hosts,
            f"{seed}/runpod",
            floor_of=lambda host: self.floor(host.gpu, host.cloud),
            displace=self.fleet.displace,
        )
        self._plan_fate(random.Random(f"{seed}/runpod/fate"))

    # --- time and looking -------------------------------------------------------------------------------------------
    @property
    def now(self) -> float:
        """Return the market's time, epoch seconds."""
        return self._timeline.now

    def advance_to(self, now: float) -> None:
        """Let everything due until `now` happen, in order. Going back is ignored."""
        self._timeline.advance_to(now)

    @property
    def credit(self) -> float:
        """Return the account's balance at this moment, dollars."""
        return self.fleet.till.credit(self.now)

    @property
    def pods(self) -> dict[str, Pod]:
        """Return every pod there ever was, by id, in order of creation."""
        return self.fleet.pods

    def live_contracts(self) -> list[Pod]:
        """Return the pods that exist now, in order of creation."""
        return self.fleet.live()

    def pod(self, pod_id: str) -> Pod:
        """Return a pod that still exists, or raise Refused."""
        pod = self.pods.get(pod_id)
        if pod is None or pod.ended is not None:
            raise Refused(Refused.NO_SUCH_POD, "pod not found")
        return pod

    def price(self, gpu: GpuType, cloud: Cloud) -> float:
        """Return $/h of one GPU on demand, with the climate's spikes."""
        return prices.price(self.climate, gpu, cloud, self.now - self.start_time)

    def floor(self, gpu: GpuType, cloud: Cloud) -> float | None:
        """Return the lowest bid for one GPU that the market takes; None where no bid is taken."""
        if self.mode.includes(Mode.FLOOR_EQUALS_ONDEMAND):
            return self.price(gpu, cloud)
        return prices.floor(self.climate, gpu, cloud, self.now - self.start_time)

    @property
    def offered(self) -> Hashable:
        """Return a key of the catalogue. While this key is equal, every answer about offers is equal."""
        spikes = prices.spiking(self.climate, self.now - self.start_time)
        return self.stock.changes, self._silences, self.mode, spikes

    def disk_price(self, gigabytes: float) -> float:
        """Return $/h of container disk of that size while a pod runs."""
        return gigabytes * assumed_figures.CONTAINER_DISK / assumed_figures.MONTH_HOURS

    def fitting(self, terms: Terms) -> list[Host]:
        """Return the hosts that could ever hold a pod of these terms, whether free or not."""
        return [host for host in self._hosts_of[terms.gpu.type_id] if host.is_online and _fits(host, terms)]

    # --- the renter's calls -----------------------------------------------------------------------------------------
    def rent(self, terms: Terms, bid: float | None = None) -> Pod:
        """Make a pod, on demand without a bid ($/h of one GPU), or raise Refused."""
        fitting = self.fitting(terms)
        if bid is not None:
            fitting = [host for host in fitting if self._is_biddable(host, bid)]
        rates = [self.price(host.gpu, host.cloud) if bid is None else bid for host in fitting]
        fitting = [
            host
            for host, rate in zip(fitting, rates, strict=True)
            if terms.most_per_hour is None or rate * terms.gpu_count <= terms.most_per_hour + 1e-9
        ]
        host = self._place(fitting, terms.gpu_count, bid)
        if host is None:
            raise Refused(Refused.NO_STOCK, NO_STOCK if bid is None else NO_SPOT_STOCK)
        price = self.price(host.gpu, host.cloud)
        self.fleet.require_balance((price if bid is None else bid) * terms.gpu_count)
        pod = Pod(
            contract_id=0,
            pod_id=hosts.token(self._account, 14),
            terms=terms,
            host=host,
            gpu_count=terms.gpu_count,
            price=price,
            bid=bid,
            label=terms.name,
            image=terms.image,
            image_gb=images.size_gb(terms.image),
            created=self.now,
            change=Change.RENTED,
            changed=self.now,
            env=dict(terms.env),
            port_names=terms.ports,
            args=terms.args,
            disk_gb=terms.disk_gb,
            volume_gb=0 if terms.network_volume else terms.volume_gb,
            volume_path=terms.volume_path,
        )
        self.fleet.displace(self.stock.yielding(host, terms.gpu_count, bid) or [])
        self.fleet.open(pod)
        return pod

    def resume(self, pod_id: str, bid: float | None = None, gpu_count: int | None = None) -> Pod:
        """Start a stopped pod on its own host, a bidder's with a bid ($/h of one GPU), or raise Refused."""
        pod = self.pod(pod_id)
        if pod.holds_gpu:
            raise Refused(Refused.NOT_EXITED, "Cannot resume a pod that is not in exited state")
        if pod.is_bid and bid is None:
            raise Refused(Refused.IS_SPOT, "Cannot resume a spot pod as an on demand pod.")
        if bid is not None and self.mode.includes(Mode.SPOT_DISCONTINUED):
            raise Refused(Refused.NO_SPOT, "Spot pods are no longer offered")
        count = gpu_count or pod.gpu_count
        floor = self.floor(pod.host.gpu, pod.host.cloud)
        if bid is not None and (floor is None or bid < floor - 1e-9):
            raise Refused(Refused.BID_TOO_LOW, OUTBID)
        yielding = self.stock.yielding(pod.host, count, bid)
        if yielding is None:
            could = bid is not None and self.stock.yielding(pod.host, count, None) is not None
            raise Refused(Refused.BID_TOO_LOW, OUTBID) if could else Refused(Refused.NO_FREE_GPUS, FULL_HOST)
        self.fleet.require_balance((pod.price if bid is None else bid) * count, is_resumed=True)
        self.fleet.displace(yielding)
        pod.bid, pod.gpu_count = bid, count
        self.fleet.start(pod)
        return pod

    def stop(self, pod_id: str) -> Pod:
        """Stop it: it loses its GPUs, and its volume stays and bills. A stopped pod stays as it is."""
        pod = self.pod(pod_id)
        if pod.is_locked:
            raise Refused(Refused.WRONG_STATE, "The pod is locked.")
        if pod.holds_gpu:
            self.fleet.exit(pod, Change.STOPPED)
        return pod

    def restart(self, pod_id: str) -> Pod:
        """Restart its container without giving up the GPUs."""
        pod = self.pod(pod_id)
        self.fleet.restart(pod)
        return pod

    def edit(self, pod_id: str, *, disk_gb: int | None = None) -> None:
        """Apply a pod's changed image, command or environment: its container is made anew."""
        self.fleet.remake(self.pod(pod_id), disk_gb)

    def terminate(self, pod_id: str) -> None:
        """End it, with its files."""
        self.fleet.end(self.pod(pod_id), Change.TERMINATED, "destroyed")

    def log_lines(self, pod: Pod) -> list[str]:
        """Return the lines that its container printed, the oldest first, each after its UTC time."""
        return self.fleet.log_lines(pod)

    # --- forced events ---
    def set_mode(self, mode: Mode) -> None:
        """Set what the market sells from now on."""
        self.mode = mode

    def add_rival(
        self, machine_id: int, gpus: int | None = None, bid: float | None = None, *, on_demand: bool = False
    ) -> int:
        """Put a renter on a host until it is removed. `bid` is $/h of one GPU. Raises Refusal where it has no room."""
        if on_demand != (bid is None):
            raise Refusal(Refusal.BAD_PRICE, "A rival either bids or rents on demand.")
        host = self._host(machine_id)
        guest = self._crowd.invite(host, gpus or host.gpu_count, bid, math.inf)
        if guest is None:
            raise Refusal(Refusal.ASK_TAKEN, f"Nobody on host {machine_id} yields {gpus or host.gpu_count} GPUs to it.")
        self._rival_count += 1
        self.rivals[FIRST_RIVAL + self._rival_count - 1] = guest
        return FIRST_RIVAL + self._rival_count - 1

    def remove_rival(self, rival_id: int) -> bool:
        """Remove a renter. Return False if none has that id."""
        guest = self.rivals.pop(rival_id, None)
        if guest is not None:
            self.stock.remove(guest)
        return guest is not None

    def set_host_offline(self, machine_id: int, until: float | None) -> None:
        """Let a host fall silent until a time (None: until set_host_online)."""
        host = self._host(machine_id)
        self._silences += 1
        host.offline_until = math.inf if until is None else until
        self.fleet.fall_silent(host)
        if until is not None:
            self._timeline.put(until, lambda: self._speak_again(host, until))

    def plan_maintenance(self, machine_id: int, after: float, seconds: float) -> None:
        """Announce on its pods that a host will be silent for `seconds`, from `after` seconds on."""
        host, begin = self._host(machine_id), self.now + after
        host.maintenance = (begin, begin + seconds) if after else None
        self._timeline.put(begin, lambda: self.set_host_offline(machine_id, begin + seconds))

    def set_host_online(self, machine_id: int) -> None:
        """Let a silent host answer again."""
        host = self._host(machine_id)
        self._silences += 1
        host.offline_until = None
        self.fleet.speak(host)

    def set_host_gone(self, machine_id: int) -> None:
        """Remove a host for good, with every pod on it."""
        host = self._host(machine_id)
        self._silences += 1
        host.is_gone = True
        for pod in [pod for pod in self.live_contracts() if pod.host is host]:
            self.fleet.end(pod, Change.EXITED, "host_gone")

    def set_credit(self, dollars: float) -> None:
        """Set the account's balance. The next check of billing acts on it."""
        self.fleet.till.grant(dollars - self.credit)

    def fail_pull(self, contract_id: int | None = None, *, probability: float = 1.0) -> None:
        """Let image pulls fail, of one pod (by its number in the truth) or of all, until calm_pulls."""
        self.fleet.containers.fail(self._numbered(contract_id), probability)

    def stick_loading(self, contract_id: int | None = None, *, probability: float = 1.0) -> None:
        """Let image pulls hang, of one pod (by its number in the truth) or of all, until calm_pulls."""
        self.fleet.containers.stick(self._numbered(contract_id), probability)

    def calm_pulls(self) -> None:
        """End fail_pull and stick_loading; a pull that hangs goes on."""
        self.fleet.containers.calm(self.live_contracts())

    # --- money ------------------------------------------------------------------------------------------------------
    def charges(self, since: float, until: float) -> list[Charge]:
        """Return the charges of the UTC hours that touch the span, by hour, pod, kind and rate."""
        return self.fleet.till.charges(since, until, self.now)

    def charged_total(self) -> float:
        """Return every dollar charged so far."""
        return self.fleet.till.charged(self.now)

    # --- inside -----------------------------------------------------------------------------------------------------
    def _is_biddable(self, host: Host, bid: float) -> bool:
        floor = None if self.mode.includes(Mode.SPOT_DISCONTINUED) else self.floor(host.gpu, host.cloud)
        return floor is not None and bid >= floor - 1e-9

    def _place(self, candidates: Sequence[Host], count: int, bid: float | None) -> Host | None:
        """Choose the host of a pod: a free one if there is any, else one whose holders leave."""
        free = [host for host in candidates if self.stock.free(host) >= count]
        able = free or [host for host in candidates if self.stock.yielding(host, count, bid) is not None]
        return self._account.choice(able) if able else None

    def _host(self, machine_id: int) -> Host:
        if machine_id not in self.hosts:
            raise Refusal(Refusal.NO_SUCH_HOST, f"There is no host {machine_id}.")
        return self.hosts[machine_id]

    def _numbered(self, contract_id: int | None) -> Pod | None:
        if contract_id is None:
            return None
        for pod in self.live_contracts():
            if pod.contract_id == contract_id:
                return pod
        raise Refusal(Refusal.NO_SUCH_CONTRACT, f"There is no pod of number {contract_id}.")

    def _plan_fate(self, rng: random.Random) -> None:
        """Plan the hosts' own outages, and the climate's strikes, turns and deposits."""
        for host in self.hosts.values():
            self._plan_outage(host, random.Random(f"{host.token}/outages"))
        for strike in self.climate.strikes:
            begins = self.start_time + strike.at_seconds
            self._timeline.put(begins, lambda strike=strike: self._strike(strike, rng))  # type: ignore[misc]
        for turn in self.climate.table(Runpod).turns:
            mode = sales_modes.parse(turn.mode)
            self._timeline.put(self.start_time + turn.at_seconds, lambda mode=mode: self.set_mode(mode))  # type: ignore[misc]
        for deposit in self.climate.deposits:
            comes, dollars = self.start_time + deposit.at_seconds, deposit.dollars
            self._timeline.put(comes, lambda dollars=dollars: self.fleet.till.grant(dollars))  # type: ignore[misc]

    def _plan_outage(self, host: Host, rng: random.Random) -> None:
        gap = demand.gap(rng, demand.outages_per_hour(assumed_figures.RELIABILITY[host.cloud.value], self.climate))
        if gap < math.inf:
            self._timeline.put(self.now + gap, lambda: self._fail(host, rng))

    def _fail(self, host: Host, rng: random.Random) -> None:
        seconds = demand.outage(rng)
        if host.is_online:
            if seconds == math.inf:
                self.set_host_gone(host.machine_id)
                return
            self.set_host_offline(host.machine_id, self.now + seconds)
        self._plan_outage(host, rng)

    def _speak_again(self, host: Host, until: float) -> None:
        if host.offline_until == until and not host.is_gone:
            self.set_host_online(host.machine_id)

    def _strike(self, strike: Strike, rng: random.Random) -> None:
        held = sorted({pod.host.machine_id for pod in self.live_contracts() if pod.holds_gpu})
        machine_id = rng.choice(held if held and strike.aim == "held" else list(self.hosts))
        if strike.fault == "host_gone":
            self.set_host_gone(machine_id)
        else:
            self.plan_maintenance(machine_id, strike.notice_seconds * (strike.fault == "maintenance"), strike.seconds)


def _fits(host: Host, terms: Terms) -> bool:
    return (
        host.cloud in terms.clouds
        and host.gpu_count >= terms.gpu_count
        and (not terms.centers or host.center_id in terms.centers)
        and (not terms.countries or host.country in terms.countries)
        and (not terms.cudas or host.cuda in terms.cudas)
        and (terms.least_cuda is None or _version(host.cuda) >= _version(terms.least_cuda))
        and host.vcpu_per_gpu * terms.gpu_count >= terms.least_vcpu
        and host.ram_gb_per_gpu * terms.gpu_count >= terms.least_ram_gb
        and (host.has_public_ip or not terms.needs_public_ip)
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
