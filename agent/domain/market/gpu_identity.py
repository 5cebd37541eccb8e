"""Whether two names may mean one GPU model: markets and drivers write the same card in different ways.

Markets leave out memory, bus and edition ("A100 SXM4", "H100 SXM"); drivers write them ("A100-SXM4-80GB", "H100 80GB
HBM3"). Only the parts that both write are compared: the number, and the words that mean another card.
"""

import re

from agent.domain.market import gpu

_NUMBER = re.compile(r"(?P<number>[A-Z]{0,2}\d{1,5})(?P<super>S)?")
_NO_MODEL = re.compile(r"\d+GB|HBM\d\w?|GDDR\d\w?|SXM\d?|MIG|\dG\.\d+GB")
_OTHER_CARD = frozenset({"TI", "ADA", "PRO"})
_BUS = re.compile(r"PCIE|SXM|NVL")


def may_be_same(one: str, other: str) -> bool:
    """Return False only if both names have a number, or a bus, and name different cards."""
    first, second = _parts(one), _parts(other)
    buses = {match[0] for text in (one, other) if (match := _BUS.search(text.upper()))}
    return first is None or second is None or (first == second and len(buses) < len((one, other)))


def _parts(text: str) -> tuple[str, bool, frozenset[str]] | None:
    """Return (number, whether it is a SUPER, words of another card), or None for a name without a number."""
    words = [word for word in gpu.model(text).split() if not _NO_MODEL.fullmatch(word)]
    place, found = next(((at, match) for at, word in enumerate(words) if (match := _NUMBER.match(word))), (0, None))
    if found is None:
        return None
    # Vast writes "GTX 1660 S" for a SUPER, but "RTX PRO 6000 S" for the server card.
    is_super = bool(found["super"]) or (words[place + 1 : place + 2] == ["S"] and "PRO" not in words)
    return found["number"], is_super, frozenset(words) & _OTHER_CARD
