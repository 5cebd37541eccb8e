"""By which way the public keys of a workload come to its instances, for a person who wants to log in."""

from collections.abc import Mapping

AT_THE_START: Mapping[str, str] = {
    "vast": "written by the start script of the container",
    "runpod": (
        "given to the container at its start as PUBLIC_KEY; RunPod's API registers keys with the account alone and "
        "updates no running instance"
    ),
}
"""What happens at the start, by market."""
REGISTERED = frozenset({"vast"})
"""The markets that register keys with an instance."""


def sentence(market: str, seen_at: str | None) -> str:
    """Return the way in force on one instance. `seen_at`: when its market first showed the keys in its present run."""
    if seen_at:
        return f"the keys are registered with the instance by the API of {market}, which showed them at {seen_at}"
    at_start = f"the keys are {AT_THE_START.get(market, 'given to the container at its start')}"
    more = f"; {market} has not shown them on the instance yet" if market in REGISTERED else ""
    return at_start + more
