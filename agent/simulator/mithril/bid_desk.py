"""The renter's calls about bids: place, change, pause, resume, end, and their refusals."""

import random

from agent.simulator.event_queue import Timeline
from agent.simulator.instances import images
from agent.simulator.mithril import assumed_figures, identifiers, places, startup_script
from agent.simulator.mithril.belongings import Belongings
from agent.simulator.mithril.bid_fleet import Fleet
from agent.simulator.mithril.model import Bid, Happening, Machines, Refused, Status, Terms
from agent.simulator.mithril.pool_auction import Bidder, PoolAuction

FIRST_NUMBER = 90_000_001  # apart from the numbers of the other markets
FIRST_MACHINE = 19_000_001


class BidDesk:
    """Takes the calls of one account."""

    def __init__(
        self,
        timeline: Timeline,
        pools: dict[tuple[str, str], PoolAuction],
        fleet: Fleet,
        belongings: Belongings,
        ids: random.Random,
    ) -> None:
        """Have no bids. `ids` draws theirs."""
        self._timeline = timeline
        self._pools = pools
        self._fleet = fleet
        self._belongings = belongings
        self._ids = ids
        self.bids: dict[str, Bid] = {}
        self.hosts: dict[int, Machines] = {}

    def live(self) -> list[Bid]:
        """Return the bids that have not ended, in order of creation."""
        return [bid for bid in self.bids.values() if bid.ended is None]

    def place(self, terms: Terms) -> Bid:
        """Place a bid, which the next auction judges, or raise Refused."""
        if any(bid.terms.name == terms.name for bid in self.live()):
            raise Refused(400, "Name already used")
        self._check_limit(terms.pool, terms.limit_cents)
        self._check_quota(terms)
        self._belongings.check_volumes(terms.volumes, terms.pool.region)
        self._belongings.check_keys(terms.ssh_keys)
        number = FIRST_NUMBER + len(self.bids)
        host = self.hosts[FIRST_MACHINE + len(self.bids)] = Machines(
            FIRST_MACHINE + len(self.bids), assumed_figures.INET_DOWN
        )
        container = startup_script.read(terms.script)
        bid = Bid(
            contract_id=number,
            fid=identifiers.fid(self._ids, "bid"),
            terms=terms,
            label=terms.name,
            limit_cents=terms.limit_cents,
            volumes=terms.volumes,
            created=self._timeline.now,
            host=host,
            image=container.image,
            image_gb=images.size_gb(container.image) if container.image else 0.0,
            env=container.env,
            open_ports=container.ports,
            words=container.words,
        )
        self.bids[bid.fid] = bid
        self._fleet.open(bid)
        self._join(bid)
        return bid

    def reprice(self, bid: Bid, limit_cents: int) -> None:
        """Change the limit of a bid, or raise Refused."""
        self._check_live(bid)
        self._check_limit(bid.pool, limit_cents)
        if limit_cents == bid.limit_cents:
            return
        bid.limit_cents = limit_cents
        self._fleet.note(bid, Happening.LIMIT_CHANGED)
        if bid.status is not Status.PAUSED:
            self._auction(bid).reprice(bid.contract_id, limit_cents)

    def pause(self, bid: Bid) -> None:
        """Stop a bid's machines, or take it out of the auction."""
        self._check_live(bid)
        if bid.status is not Status.PAUSED:
            self._auction(bid).remove(bid.contract_id)
            self._fleet.pause(bid)

    def resume(self, bid: Bid) -> None:
        """Let a paused bid take part again; the next auction judges it."""
        self._check_live(bid)
        if bid.status is Status.PAUSED:
            self._fleet.resume(bid)
            self._join(bid)

    def attach(self, bid: Bid, volumes: tuple[str, ...]) -> None:
        """Change the volumes of a paused bid, or raise Refused."""
        self._check_live(bid)
        if bid.status is not Status.PAUSED:
            raise Refused(400, "Volumes may be edited only while the bid is paused")
        self._belongings.check_volumes(volumes, bid.pool.region)
        for volume in sorted({*volumes} - {*bid.volumes}):
            self._fleet.note(bid, Happening.VOLUMES_ATTACHED, volume)
        for volume in sorted({*bid.volumes} - {*volumes}):
            self._fleet.note(bid, Happening.VOLUMES_REMOVED, volume)
        bid.volumes = volumes

    def delete_volume(self, volume_fid: str) -> None:
        """Delete a volume that no live bid uses, or raise Refused."""
        self._belongings.delete_volume(volume_fid, self.live(), self._timeline.now)

    def terminate(self, bid: Bid) -> None:
        """End a bid with its machines and boot disks. One that has ended stays as it is."""
        if bid.ended is None:
            self._auction(bid).remove(bid.contract_id)
            self._fleet.end(bid)

    def used_quota(self, kind: str) -> int:
        """Return for how many instances of a type live bids ask."""
        return sum(bid.quantity for bid in self.live() if bid.pool.kind.fid == kind)

    def replace_machines(self, bid: Bid) -> None:
        """Let the machines of a bid fail for good. The bid is open again, and the next auction gives it others."""
        if bid.holds_gpu:
            self._auction(bid).remove(bid.contract_id)
            self._fleet.fail(bid)
            self._join(bid)

    # --- inside -----------------------------------------------------------------------------------------------------
    def _auction(self, bid: Bid) -> PoolAuction:
        return self._pools[bid.pool.kind.fid, bid.pool.region]

    def _join(self, bid: Bid) -> None:
        bidder = Bidder(bid.contract_id, bid.limit_cents, bid.quantity, bid.created, owner=bid)
        self._auction(bid).add(bidder)

    def _check_live(self, bid: Bid) -> None:
        if bid.ended is not None:
            raise Refused(400, "Bid is terminated")

    def _check_limit(self, pool: places.Pool, limit_cents: int) -> None:
        if limit_cents < pool.minimum_cents:
            sentence = f"Limit price below minimum of ${pool.minimum_cents / 100:.2f}"
            raise Refused(422, sentence, ("body", "limit_price"))

    def _check_quota(self, terms: Terms) -> None:
        if self.used_quota(terms.pool.kind.fid) + terms.quantity > assumed_figures.QUOTA_INSTANCES:
            raise Refused(400, f"Spot quota exceeded for {terms.pool.kind.name}")
