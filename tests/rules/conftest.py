"""The money-safety rules as properties: the same examples in every run, so that a failure can be met again."""

import os

from hypothesis import HealthCheck, Phase, settings

from tests.support.engines import database, engine

__all__ = ["database", "engine"]

IS_SEARCH = "GPUBID_RANDOM" in os.environ

settings.register_profile(
    "rules",
    # GPUBID_RANDOM=1 searches for new worlds; a plain run must play the same story twice.
    derandomize=not IS_SEARCH,
    deadline=None,
    max_examples=int(os.environ.get("GPUBID_EXAMPLES", "25")),
    stateful_step_count=25,
    # Shrinking a world takes minutes: CI reports a failure as it was met.
    phases=(Phase.explicit, Phase.generate, *((Phase.shrink,) if "GPUBID_SHRINK" in os.environ else ())),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large),
    print_blob=True,
)
