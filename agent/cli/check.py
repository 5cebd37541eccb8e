"""`gpubid check`: is the configuration usable, and what does it say."""

from agent.cli import session


def check(config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False) -> None:
    """Check the configuration and every strategy file; name each mistake with its file, line, key and mend."""
    settings, tuned = session.read(config)
    summary = {
        "file": str(settings.file),
        "digest": settings.digest,
        "markets": {market.name: _market(market.simulated, spend=market.may_spend) for market in settings.markets},
        "workloads": {work.name: {"slots": work.slots, "strategy": work.strategy} for work in settings.workloads},
        "strategies": {name: one.digest for name, one in sorted(tuned.items())},
        "ledger": str(settings.ledger),
    }
    if as_json:
        session.print_json(summary)
        return
    session.say(f"{settings.file}: good, digest {settings.digest[:12]}")
    for market in settings.markets:
        session.say(f"  market {market.name}: {_market(market.simulated, spend=market.may_spend)}")
    for work in settings.workloads:
        strategy = tuned[work.strategy]
        session.say(f"  workload {work.name}: {work.slots} slot(s) on {work.strategy} ({strategy.digest[:12]})")


def _market(climate: str, *, spend: bool) -> str:
    if climate:
        return f"simulated ({climate}), costs nothing"
    return "live, and may spend" if spend else "live, and may only look (spend = false)"
