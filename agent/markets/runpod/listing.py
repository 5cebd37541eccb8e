"""Every pod of the account, page by page, or nothing.

The published document of August 2026 has no pages; clients written since September follow `nextCursor`
(skypilot-org/skypilot pull request 10846). A further page that the market names is read: a pod on it would look lost.
"""

from agent.markets import market_errors
from agent.markets.runpod import client, parse, states

MOST_PAGES = 100
"""Pages after which a listing counts as endless."""


async def pods(endpoints: client.RunPodClient) -> list[parse.PodRow]:
    """Return every pod but those that have ended and cost nothing.

    Raises:
        Malformed: the body is no page, a pod is listed twice with a difference, or the pages do not end.
    """
    found: dict[str, parse.PodRow] = {}
    cursor = ""
    for _ in range(MOST_PAGES):
        page = parse.page((await endpoints.pods(cursor)).body)
        for row in page.pods:
            if found.setdefault(row.id, row) != row:
                raise market_errors.Malformed("runpod listed a pod twice, with a difference; the listing is refused.")
        if not page.nextCursor:
            return [row for row in found.values() if row.status != states.GONE or row.cost]
        if page.nextCursor == cursor or not page.pods:
            raise market_errors.Malformed("runpod's listing repeats a cursor; it is refused.")
        cursor = page.nextCursor
    raise market_errors.Malformed(f"runpod's listing has more than {MOST_PAGES} pages; it is refused.")
