"""Orphans are adopted, held or released through their leases; this module finds only who stops our writing.

Foreign instances never come here: reconcile names only what two answers showed under our fleet id.
"""

from collections.abc import Iterable

from agent.decide.facts import Fact, InstanceFound


def second_daemon(facts: Iterable[Fact]) -> str:
    """Return why writing must stop for good, or an empty text."""
    found = [fact for fact in facts if isinstance(fact, InstanceFound) and fact.verdict == "second_daemon"]
    return found[0].sentence if found else ""
