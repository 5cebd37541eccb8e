"""A person stops all spending, and ends that stop."""

from agent.app import App
from agent.domain.record.intent import Intent
from agent.domain.work.order import Order


async def kill(app: App, who: str = "a test", *, keep_disks: bool = False) -> list[Intent]:
    """Stop all spending. Return the intents that were sent at once."""
    _, done = await app.say(Order("kill", "fleet:all", keep_disks=keep_disks), who)
    return done


async def lift(app: App, who: str = "a test") -> None:
    """End a stop of all spending."""
    await app.say(Order("resume", "fleet:all"), who)
