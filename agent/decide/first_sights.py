"""When a configuration first had each workload: from then on a slot that never ran is down.

The ledger keeps it while the configuration has the workload, so that a restart begins no wait anew. A workload that is
renamed keeps it, and one that is removed and added again begins anew.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from agent.domain.work.workload import Workload


def of(
    workloads: Iterable[Workload], recorded: Mapping[str, datetime], seen: Mapping[str, datetime]
) -> dict[str, datetime]:
    """Return the first sight of each workload, by name: as recorded, also under its old name, else as `seen`."""
    return {work.name: recorded.get(work.name) or recorded.get(work.was) or seen[work.name] for work in workloads}


def news(recorded: Mapping[str, datetime], present: Mapping[str, datetime]) -> dict[str, datetime | None]:
    """Return the first sights to record, by workload; None forgets a workload that the configuration has no more."""
    gone: dict[str, datetime | None] = dict.fromkeys(recorded.keys() - present.keys())
    return gone | {name: at for name, at in present.items() if recorded.get(name) != at}
