"""By which way the public keys of a workload come to its instances, for a person who wants to log in."""

from agent.markets import registered_markets


def sentence(market: str, seen_at: str | None) -> str:
    """Return the way in force on one instance. `seen_at`: when its market first showed the keys in its present run."""
    if seen_at:
        return f"the keys are registered with the instance by the API of {market}, which showed them at {seen_at}"
    record = registered_markets.record(market) if market in registered_markets.names() else None
    if record is None:
        return "the keys are given to the container at its start"
    more = f"; {market} has not shown them on the instance yet" if record.registers_keys else ""
    return f"the keys are {record.keys_at_start}{more}"
