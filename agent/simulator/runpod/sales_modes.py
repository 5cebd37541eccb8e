"""The modes of RunPod's market by year: each mode adds its changes to the one before it.

A climate without a mode has spot_discontinued, the market of today. REST v1 still answers there: its end was announced
for 2026-11-15, and nobody has published what it answers since.

| mode | since | what differs |
|---|---|---|
| historical | | interruptible pods at a bid, from a floor about half the list price |
| floor_equals_ondemand | mid-2026 | the floor of a bid is the list price |
| spot_discontinued | 2026-09 | no interruptible pod is created or resumed; those that run go on until they are outbid |
| spot_removed | nowhere documented | the mutations of interruptible pods are gone from the schema |
| v1_gone | announced for 2026-11-15 | REST v1 answers 410 |
| graphql_gone | announced for early 2027 | GraphQL answers 410 too |
"""

import enum


class Mode(enum.Enum):
    """A mode of the market."""

    HISTORICAL = "historical"
    FLOOR_EQUALS_ONDEMAND = "floor_equals_ondemand"
    SPOT_DISCONTINUED = "spot_discontinued"
    SPOT_REMOVED = "spot_removed"
    V1_GONE = "v1_gone"
    GRAPHQL_GONE = "graphql_gone"

    def includes(self, other: "Mode") -> bool:
        """Return whether this mode contains the changes of another."""
        return _YEARS[self] >= _YEARS[other]


_YEARS = {mode: year for year, mode in enumerate(Mode)}
NAMES = tuple(mode.value for mode in Mode)


def parse(text: object) -> Mode:
    """Read a mode's name. Raises ValueError with a sentence."""
    if text not in NAMES:
        raise ValueError(f"mode: {text!r} is unknown; there are {', '.join(NAMES)}.")
    return Mode(text)
