"""How far apart two probes of a lease may be while its market is listed: a longer time shows that nobody looked."""

from datetime import timedelta

from agent.domain.fleet import Fleet

MOST_AT_ONCE = 16
"""The most probes that run at once on one market."""
ONE_READING = timedelta(minutes=5)
"""The time between two probes of one lease, with room to spare: logs and buckets are read once a minute."""


def most_apart(fleet: Fleet, market: str) -> timedelta:
    """Return the longest time between two probes of a lease on a market that counts as watched.

    In a large fleet each lease waits for its turn, and each turn takes a poll.
    """
    leases = sum(lease.market == market and lease.is_open for lease in fleet.leases)
    turns = max(-(-leases // MOST_AT_ONCE), 1)
    return ONE_READING + turns * fleet.poll
