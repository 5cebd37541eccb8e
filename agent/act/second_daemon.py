"""Finds the second daemon that stops our writing. Orphans are adopted, held or released through their leases.

Foreign instances never come here: reconcile names only instances that two answers showed under our fleet id.
"""

from collections.abc import Iterable

from agent.decide.facts import Fact, InstanceFound


def second_daemon(facts: Iterable[Fact]) -> str:
    """Return why writing must stop for good, with the fix, or an empty text."""
    others = [fact for fact in facts if isinstance(fact, InstanceFound) and fact.verdict == "second_daemon"]
    if not others:
        return ""
    return f"nothing more is written: {others[0].sentence}; stop the wrong one, then start the other again"
