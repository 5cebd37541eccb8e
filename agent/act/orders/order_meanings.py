"""The meaning of each order in words, for a person who is asked whether to give it."""

from agent.domain.record.hold import Word
from agent.domain.work.order import Order

MEANINGS = {
    "drain": "Nothing new is rented for it; its leases continue until they are lost or released.",
    "pause": "It is stopped until you resume it. Its disk still bills.",
    "resume": "Your pause, drain or hold of it ends.",
    "release": "It is ended for good, with its disk and all files on it.",
    "lock": "It is not rented until you unlock it; leases that run there continue.",
    "unlock": "It may be used again at once.",
}
_LIFT = "Nothing is rented until you run `gpubid kill --lift`."
KILL_MEANINGS = {
    False: f"Every lease is ended for good, with its disk and all files on it. {_LIFT}",
    True: f"Every lease is stopped. Its disk still bills. {_LIFT}",
}
"""The meanings of a kill of everything, without and with `keep_disks`."""
LIFTED = "The daemon may rent again, as the configuration asks."


def meaning(order: Order) -> str:
    """Return the meaning of an order on a slot, lease, host or market, of a kill of everything, or of its end.

    Raises:
        KeyError: the verb is of another kind.
    """
    if not order.is_of_everything:
        return MEANINGS[order.verb]
    return KILL_MEANINGS[order.keep_disks] if order.verb == Word.KILL else LIFTED
