"""Writes the guards' measurements of their work and of their hosts."""

from agent.decide.facts import GuardMeasured, OfGuard
from agent.ledger.transaction import Transaction


def write(tx: Transaction, fact: OfGuard) -> None:
    """Write one such fact in a transaction."""
    if isinstance(fact, GuardMeasured):
        tx.keep_guard_figures(fact.after)
        if fact.notice is not None:
            tx.add_notice(fact.notice)
    else:
        tx.keep_host_check(fact.after)
