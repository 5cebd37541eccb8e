"""The check of a rehearsed world against the money-safety rules, cycle after cycle."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.domain.record.lease import LeaseState
from agent.ledger.tables.spend_rows import SpendKey
from agent.markets import labels
from agent.simulator import recorded_figures
from agent.simulator.vast.model import Contract
from tests.support.verdict import SPEND_DOLLARS, SPEND_SHARE
from tests.support.witness import intent_id

if TYPE_CHECKING:
    from tests.support.world import Rehearsed

ORPHAN_SECONDS = 600.0
SLOW_SECONDS = 10.0
"""Of an answer: whoever polls looks again after two polls and this."""


class Judge:
    """Judges one world after every cycle, and remembers the facts that the next judgement needs."""

    def __init__(self, world: "Rehearsed") -> None:
        """Begin with a world that has no blackout or lie."""
        self._world = world
        self._unknown_since: dict[int, float] = {}
        self._known: set[str] = set()
        self._calm_cycles = 0
        self._seen_at = world.clock.time()
        self._unseen_dollars = 0.0

    async def broken(self) -> list[str]:
        """Return every rule that the world breaks now."""
        broken = [*self._doubles(), *self._crowded(), *self._orphans()]
        broken += await self._miscounted() if self._has_seen() else []
        self._known |= {lease.instance_id for lease in self._world.leases()}
        return broken

    def _doubles(self) -> list[str]:
        rents = Counter(
            label.intent_id for each in self._world.contracts() if (label := labels.parse(each.label or ""))
        )
        slots = Counter(each.slot for each in self._world.open_intents() if each.kind.is_paying)
        broken = [f"rent {name} has {count} contracts" for name, count in rents.items() if count > 1]
        return broken + [f"slot {slot} has {count} open paying intents" for slot, count in slots.items() if count > 1]

    def _crowded(self) -> list[str]:
        kept = [
            lease for lease in self._world.leases() if lease.state is not LeaseState.RELEASING and not lease.is_held
        ]
        hosts = Counter(lease.host_id for lease in kept)
        slots = Counter(lease.slot for lease in kept)
        broken = [f"host {host} holds {count} leases" for host, count in hosts.items() if count > 1]
        return broken + [f"slot {slot} holds {count} leases" for slot, count in slots.items() if count > 2]

    def _orphans(self) -> list[str]:
        known = {lease.instance_id for lease in self._world.leases()}
        doubted = {intent.intent_id for intent in self._world.open_intents()}
        billing = set(self._world.market.billing_now())
        unknown = [
            contract.contract_id
            for contract in self._world.live()
            if contract.contract_id in billing
            and str(contract.contract_id) not in known
            and intent_id(contract) not in doubted
        ]
        now = self._world.clock.time()
        self._unknown_since = {number: self._unknown_since.get(number, now) for number in unknown}
        return [
            f"contract {number} bills and nobody knows, for {now - since:.0f} s"
            for number, since in self._unknown_since.items()
            if now - since > ORPHAN_SECONDS
        ]

    async def _miscounted(self) -> list[str]:
        spent = await self._world.spend()
        charged = sum(sum(contract.charged.values()) for contract in self._charged())
        unseen = self._unseen_dollars + self._since_listing() + self._unmetered()
        tolerance = max(SPEND_SHARE * charged, SPEND_DOLLARS) + unseen
        if abs(spent - charged) <= tolerance:
            return []
        return [f"the ledger counts ${spent:.4f}, the market charged ${charged:.4f}", *await self._bill()]

    async def _bill(self) -> list[str]:
        """Return the cost of each contract, by the ledger and in truth."""
        reader = await self._world.app.ledger.reader()
        lines = {line.key: line for line in await reader.spend_by(SpendKey.LEASE)}
        told = []
        for contract in self._world.contracts():
            mine = [lines[key] for key in lines if key.split("-")[1] == str(contract.contract_id)]
            parts = [sum(getattr(line, name).dollars for line in mine) for name in ("gpu", "disk", "traffic")]
            true = [contract.charged[name] for name in ("gpu", "disk", "bandwidth")]
            pairs = ", ".join(f"{part:.4f}/{whole:.4f}" for part, whole in zip(parts, true, strict=True))
            told.append(f"  {contract.contract_id}: gpu, disk, traffic {pairs}")
        return told

    def _since_listing(self) -> float:
        """Return the dollars that came due since the last listing, because a cycle waits at every order."""
        listed = self._world.scene.start.timestamp() + min(
            poller.view.listed_monotonic for poller in self._world.app.pollers
        )
        seconds = self._world.clock.time() - listed
        due = 0.0
        for contract in self._world.live():
            due += (self._world.market.gpu_rate(contract) + self._world.market.disk_rate(contract)) * seconds / 3600
            if contract.first_started is None or contract.first_started >= listed:
                gigabytes = min(contract.image_gb, recorded_figures.PULL_MBITS / 8000 * seconds)
                due += gigabytes * contract.host.down_price
        return due

    def _unmetered(self) -> float:
        """Return the traffic dollars of instances without a lease before this cycle. The next listing meters them."""
        return sum(each.charged["bandwidth"] for each in self._charged() if str(each.contract_id) not in self._known)

    def _has_seen(self) -> bool:
        """Return whether the program sees the world as it is, and count the dollars that it could not see.

        An event during a blackout, a lie or a pause without looks may have happened at any moment of it. And no record
        has the traffic of an instance that ended unseen.
        """
        now = self._world.clock.time()
        self._calm_cycles = 0 if self._world.simulator.weather.names() else self._calm_cycles + 1
        is_fresh = all(poller.view.is_fresh for poller in self._world.app.pollers)
        # A missing lease counts until it is proven gone. Then it is owed up to the last look that showed it.
        is_missing = any(lease.state is LeaseState.MISSING for lease in self._world.leases())
        if self._calm_cycles < 2 or not is_fresh or is_missing:
            return False
        blind = now - self._seen_at
        ended = [each for each in self._world.contracts() if each.ended is not None and each.ended >= self._seen_at]
        if blind > 2 * self._world.config.poll.total_seconds() + SLOW_SECONDS:
            rates = [
                self._world.market.gpu_rate(each) + self._world.market.disk_rate(each)
                for each in [*self._world.live(), *ended]
            ]
            self._unseen_dollars += blind * sum(rates) / 3600
        self._unseen_dollars += sum(each.image_gb * each.host.down_price for each in ended if not each.is_ready)
        self._seen_at = now
        return True

    def _charged(self) -> Sequence[Contract]:
        self._world.market.charged_total()  # brings what each contract was charged up to now
        return self._world.contracts()
