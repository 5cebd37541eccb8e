"""Ours without a lease: what the sweep found is adopted or held by the record; what we had released is released again.

Foreign instances never come here: reconcile names only what carries our fleet id or stands in the ledger.
"""

from collections.abc import Iterable, Iterator

from agent.decide.facts import Fact, InstanceFound
from agent.domain.decision import Reason, Release


def releases(facts: Iterable[Fact]) -> Iterator[Release]:
    """Yield a release for every instance that we released before and the market lists again."""
    for fact in facts:
        if isinstance(fact, InstanceFound) and fact.verdict == "release" and fact.lease is not None:
            yield Release(fact.lease, Reason("released_before", fact.sentence))


def second_daemon(facts: Iterable[Fact]) -> str:
    """Return why writing must stop for good, or an empty text."""
    found = [fact for fact in facts if isinstance(fact, InstanceFound) and fact.verdict == "second_daemon"]
    return found[0].sentence if found else ""
