"""The log of a pod as server-sent events: the lines so far, then each new line, until the pod ends."""

import datetime as dt
from collections.abc import AsyncGenerator

import msgspec

from agent.simulator.http_wire import Answer
from agent.simulator.runpod.http import calls
from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.model import Pod

MOST_LINES = 5_000
_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "Connection": "keep-alive",
    "X-Accel-Buffering": "no",
}


def answer(surface: Surface, call: Call, pod: Pod) -> Answer:
    """Answer with the log so far, and then with each new line."""
    first, sent = _since(surface, call, pod, _first(surface, call, pod))
    headers = {**_HEADERS, **surface.limits.headers(call.now)}
    return Answer(200, headers, first, more=_more(surface, call, pod, sent))


async def _more(surface: Surface, call: Call, pod: Pod, sent: int) -> AsyncGenerator[bytes, None]:
    """Yield each new piece of output until the pod ends."""
    while pod.ended is None:
        await surface.moved()
        events, sent = _since(surface, call, pod, sent)
        if events:
            yield events


def _since(surface: Surface, call: Call, pod: Pod, sent: int) -> tuple[bytes, int]:
    """Return the lines from a number on, and how many there were."""
    lines = surface.world.log_lines(pod) if call.query.get("source") != "system" else []
    gone = _gone(pod)
    # A container that starts again begins a new log.
    sent = max(min(sent, gone + len(lines)), gone)
    events = (_event(line, number, pod) for number, line in enumerate(lines[sent - gone :], sent))
    return b"".join(events), gone + len(lines)


def _first(surface: Surface, call: Call, pod: Pod) -> int:
    """Return the number of the first line to send."""
    lines = surface.world.log_lines(pod)
    cursor = call.headers.get("Last-Event-ID", call.query.get("since", "")).partition("/")[0]
    if cursor:
        try:
            since = calls.instant(cursor)
        except ValueError:
            return _gone(pod)
        later = (number for number, line in enumerate(lines) if _split(line, pod)[0] > since)
        return _gone(pod) + next(later, len(lines))
    tail = call.query.get("tail", "100")
    return _gone(pod) + max(len(lines) - min(int(tail) if tail.isdigit() else 100, MOST_LINES), 0)


def _gone(pod: Pod) -> int:
    """Return how many lines of its real processes are no longer kept."""
    return pod.process.printed()[0] if pod.process is not None else 0


def _split(line: str, pod: Pod) -> tuple[float, str]:
    """Split a line into its time and its text."""
    first, _, rest = line.partition(" ")
    try:
        return dt.datetime.fromisoformat(first).timestamp(), rest
    except ValueError:
        return pod.changed, line


def _event(line: str, number: int, pod: Pod) -> bytes:
    at, text = _split(line, pod)
    stamp = calls.stamp(at)
    body = msgspec.json.encode({"ts": stamp, "source": "container", "line": text})
    return b"id: %s/%012d\ndata: %s\n\n" % (stamp.encode(), number + 1, body)
