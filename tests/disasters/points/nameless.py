"""Point 6, too: rents in doubt that may be an instance without a label. A person alone can tell whose that one is."""

from collections.abc import Sequence

from agent.domain.record.intent import Intent, IntentKind, IntentState
from tests.disasters.sight import Sight


def rents(sight: Sight) -> Sequence[Intent]:
    """Return the rents in doubt on whose host something without a label began since they were sent."""
    doubted = (intent for intent in sight.intents if intent.state is IntentState.IN_DOUBT)
    return [intent for intent in doubted if intent.kind is IntentKind.RENT and _may_be(sight, intent)]


def _may_be(sight: Sight, rent: Intent) -> bool:
    sent = (rent.sent_at or rent.recorded_at).timestamp()
    bare = (box.thing for box in sight.truth.live if box.market == rent.market and not box.thing.label)
    return any(str(thing.host.machine_id) == rent.host_id and thing.created >= sent for thing in bare)
