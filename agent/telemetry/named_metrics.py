"""Figures by name, of few things at a time: bid and floor of each slot, and the hosts, owners and models to avoid.

1. Each cycle writes all of them anew: a slot without a bid and a cooldown that is over have no series. While a slot
   moves, bid and floor are those of the lease that was opened last.
2. The configuration bounds the slots. At most `MOST_AVOIDED` cooldowns are named, those that last longest.
"""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge

from agent.domain.fleet import Fleet
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.lease import Lease, LeaseState
from agent.telemetry.plain_text import plain

MOST_AVOIDED = 20
SIZE = "checkpoint_bytes"
LONGEST = 80
"""Characters of a name: a market writes hosts and owners."""
AVOIDED = {
    CooldownKind.HOST: "host",
    CooldownKind.OWNER: "owner",
    CooldownKind.STORM: "model",
    CooldownKind.STARTS: "model",
    CooldownKind.REJECTED: "market",
    CooldownKind.MARKET: "market",
}


class NamedFigures:
    """The families with a name as a label."""

    def __init__(self, target: CollectorRegistry) -> None:
        """Register them."""
        self._register_slots(target)
        self._register_silences(target)
        self._register_fronts(target)
        self._register_services(target)

    def _register_slots(self, target: CollectorRegistry) -> None:
        self.bid = Gauge(
            "gpubid_slot_bid_dollars_per_hour",
            "Bid of the running interruptible lease of a slot; of the last one while it moves.",
            ("workload", "slot", "market"), registry=target,
        )  # fmt: skip
        self.floor = Gauge(
            "gpubid_slot_floor_dollars_per_hour", "Floor of that lease's host, as it was seen last.",
            ("workload", "slot", "market"), registry=target,
        )  # fmt: skip
        self.avoided = Gauge(
            "gpubid_avoided_until_timestamp_seconds",
            f"Until when a host, owner, model or market gets no rent; the {MOST_AVOIDED} that last longest.",
            ("kind", "target"), registry=target,
        )  # fmt: skip
        self.measured = Gauge(
            "gpubid_measured_checkpoint_seconds",
            "Median over hosts of the guards' figures: seconds to make a checkpoint, to upload it and to restore it.",
            ("workload", "figure"), registry=target,
        )  # fmt: skip
        self.measured_size = Gauge(
            "gpubid_measured_checkpoint_bytes", "Median over hosts of the size of a checkpoint, as guards measured it.",
            ("workload",), registry=target,
        )  # fmt: skip

    def _register_silences(self, target: CollectorRegistry) -> None:
        self.silent = Gauge(
            "gpubid_guards_silent",
            "Running leases whose guard has reported nothing for 15 minutes while its bucket answers.",
            ("workload",), registry=target,
        )  # fmt: skip
        self.keyless = Gauge(
            "gpubid_leases_without_keys",
            "Running leases whose ssh keys the market has not shown for 15 minutes.",
            ("workload",), registry=target,
        )  # fmt: skip
        self.unsigned = Gauge(
            "gpubid_sign_of_life_silence_share",
            "Time since a bucket last confirmed a sign of life, as a share of deadman; at 1 a guard ends its lease.",
            ("workload",), registry=target,
        )  # fmt: skip
        self.undemanded = Gauge(
            "gpubid_demand_silence_seconds",
            "Time for which a demand has had no answer; 0 if its last question was answered.",
            ("workload",), registry=target,
        )  # fmt: skip

    def _register_services(self, target: CollectorRegistry) -> None:
        self.availability = Gauge(
            "gpubid_service_availability_ratio",
            "Share of the wanted time of the last two weeks in which a service had enough warm slots.",
            ("workload",), registry=target,
        )  # fmt: skip
        self.target = Gauge(
            "gpubid_service_target_ratio", "The target for that share, where its strategy has one.",
            ("workload",), registry=target,
        )  # fmt: skip

    def _register_fronts(self, target: CollectorRegistry) -> None:
        self.fronts = Gauge(
            "gpubid_front_servers",
            "Leases behind a proxy in front of a service: wanted, up by its own health check, and draining.",
            ("front", "workload", "state"), registry=target,
        )  # fmt: skip
        self.troubled = Gauge(
            "gpubid_front_troubled", "1 if a proxy does not answer, or if leases get no request through it.",
            ("front", "workload"), registry=target,
        )  # fmt: skip

    def see_front(self, place: tuple[str, str], counts: Mapping[str, int], *, is_troubled: bool) -> None:
        """Write one front, by its name and its workload, with its leases by state."""
        for state, count in counts.items():
            self.fronts.labels(*place, state).set(count)
        self.troubled.labels(*place).set(is_troubled)

    def forget_fronts(self) -> None:
        """Drop all fronts, before those that the configuration still has are written."""
        self.fronts.clear()
        self.troubled.clear()

    def see_unsigned(self, silences: Mapping[str, float]) -> None:
        """Write the longest silence towards the guards of each workload with dead man's switches."""
        self.unsigned.clear()
        for workload, share in silences.items():
            self.unsigned.labels(workload).set(share)

    def see_demands(self, silences: Mapping[str, float]) -> None:
        """Write for how many seconds each demand has had no answer, by workload."""
        self.undemanded.clear()
        for workload, seconds in silences.items():
            self.undemanded.labels(workload).set(seconds)

    def see_services(self, achieved: Mapping[str, float], targets: Mapping[str, float]) -> None:
        """Write the availability of services and their targets, by workload; an unknown one has no series."""
        for family, shares in ((self.availability, achieved), (self.target, targets)):
            family.clear()
            for workload, share in shares.items():
                family.labels(workload).set(share)

    def see_silent(self, guards: Mapping[str, int], keys: Mapping[str, int]) -> None:
        """Write how many guards are silent, and how many leases lack their ssh keys, by workload that has such."""
        for family, counts in ((self.silent, guards), (self.keyless, keys)):
            family.clear()
            for workload, count in counts.items():
                family.labels(workload).set(count)

    def see_measured(self, by_workload: Mapping[str, Mapping[str, float]]) -> None:
        """Write the guards' measurements by workload; a missing figure has no series."""
        self.measured.clear()
        self.measured_size.clear()
        for workload, figures in by_workload.items():
            for name, figure in figures.items():
                if name == SIZE:
                    self.measured_size.labels(workload).set(figure)
                else:
                    self.measured.labels(workload, name.removesuffix("_seconds")).set(figure)

    def see(self, fleet: Fleet) -> None:
        """Write them after a cycle."""
        for family in (self.bid, self.floor, self.avoided):
            family.clear()
        for lease in _last_bids(fleet):
            place = (lease.slot.workload, str(lease.slot), lease.market)
            self.bid.labels(*place).set(lease.bid.dollars)
            if lease.host_floor is not None:
                self.floor.labels(*place).set(lease.host_floor.dollars)
        in_force = [each for each in fleet.cooldowns if each.kind in AVOIDED and not each.is_over(fleet.now)]
        for each in sorted(in_force, key=lambda each: each.until)[-MOST_AVOIDED:]:
            self.avoided.labels(AVOIDED[each.kind], plain(each.key)[:LONGEST]).set(each.until.timestamp())


def _last_bids(fleet: Fleet) -> list[Lease]:
    """Return the running interruptible lease of each slot that was opened last."""
    bids = [
        lease for lease in fleet.leases if lease.state is LeaseState.RUNNING and lease.tenure is Tenure.INTERRUPTIBLE
    ]
    return list({lease.slot: lease for lease in sorted(bids, key=lambda lease: lease.opened_at)}.values())
