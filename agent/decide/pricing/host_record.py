"""Our own record of a host, pooled with the record of its owner's other hosts and with the market's.

Theory: each host loses an interruptible lease at a rate of its own, drawn from a Gamma whose mean is the market's rate.
Losses are Poisson over the exposure, so the posterior mean is (mean x weight + losses) / (weight + hours). A stay that
has not ended adds only its hours, as a censored lifetime does in such a posterior. Source: Gamma-Poisson conjugacy
(Gelman et al., Bayesian Data Analysis, 3rd ed., sections 2.6 and 5.1).

Invariants:
1. Counts are decayed to `now` by timestamps (domain.host); nothing else depends on time.
2. An unknown host of an unknown owner is judged by the market's record.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from agent.decide.pricing import useful_hour
from agent.domain.market import offer
from agent.domain.market.host import HostKey, HostRecord, OwnerKey, decayed

OWNER_WEIGHT = 0.25
"""The weight of an hour on another host of the same owner. Assumed: an owner's hosts and places are similar."""
_OWNER = "owner:"


def pooled(hosts: Mapping[HostKey, HostRecord], now: datetime) -> Mapping[HostKey, HostRecord]:
    """Return the record that judges each host, and under `_of_owner` the one for hosts of a known owner."""
    own = {key: decayed(record, now) for key, record in hosts.items()}
    owners: dict[OwnerKey, HostRecord] = {}
    for record in own.values():
        if record.owner.is_known:
            nothing = HostRecord(*_of_owner(record.owner), record.owner_id)
            owners[record.owner] = owners.get(record.owner, nothing).plus(record, OWNER_WEIGHT)
    records = {key: _with_owner(record, owners) for key, record in own.items()}
    return records | {_of_owner(owner): record for owner, record in owners.items()}


def _of_owner(owner: OwnerKey) -> HostKey:
    """Return the key of any host of an owner."""
    return HostKey(owner.market, _OWNER + owner.owner_id)


def _with_owner(record: HostRecord, owners: Mapping[OwnerKey, HostRecord]) -> HostRecord:
    """Return a host's record plus its owner's, without the host's own part of the owner's record."""
    owner = owners.get(record.owner)
    return record if owner is None else record.plus(owner).plus(record, -OWNER_WEIGHT)


def of_offer(hosts: Mapping[HostKey, HostRecord], candidate: offer.Offer) -> HostRecord | None:
    """Return the record that judges an offer's host, from the result of `pooled`, or None."""
    return of_host(hosts, candidate.host, candidate.owner)


def of_host(hosts: Mapping[HostKey, HostRecord], host: HostKey, owner: OwnerKey) -> HostRecord | None:
    """Return the record that judges a host, from the result of `pooled`: its own, else its owner's, or None."""
    return hosts.get(host) or hosts.get(_of_owner(owner))


def total(hosts: Iterable[HostRecord], now: datetime) -> HostRecord:
    """Return the record of all hosts together, decayed."""
    everything = HostRecord("", "", updated_at=now)
    for record in hosts:
        everything = everything.plus(decayed(record, now))
    return everything


def market_hazard(hosts: Iterable[HostRecord], now: datetime) -> float:
    """Return losses to the market per interruptible hour over all hosts, a posterior mean."""
    return hazard_of(total(hosts, now))


def hazard_of(everything: HostRecord) -> float:
    """Return losses to the market per interruptible hour from the record of all hosts together."""
    return useful_hour.market_hazard(everything.market_losses, everything.bid_seconds / 3600)
