"""A person at a terminal who types answers into a program and reads its output."""

import codecs
import os
import pty
import select
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support import launch, programs


def typed(
    words: Sequence[str], place: Path, answers: list[str], secret: str = "", key: str | None = None
) -> tuple[int, str]:
    """Run a verb at a terminal, with a key of the market or none. Type the answers at once, the secret when asked."""
    ours, theirs = pty.openpty()
    environment = programs.environment(place, VAST_API_KEY=key, TERM="dumb")
    asked = launch.at_terminal("agent", *words, folder=place, environment=environment, terminal=theirs)
    os.close(theirs)
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    shown = ""
    # A look may end in the middle of a character.
    reading = codecs.getincrementaldecoder("utf-8")()
    until = time.monotonic() + programs.PATIENCE_SECONDS
    while time.monotonic() < until:
        # The last output comes before the end is seen.
        has_ended = asked.poll() is not None
        is_shown = bool(select.select([ours], [], [], 0.2)[0])
        if has_ended and not is_shown:
            break
        # A hidden prompt discards text that was typed before the echo was off.
        if secret and "it is not shown" in shown and not termios.tcgetattr(ours)[3] & termios.ECHO:
            os.write(ours, f"{secret}\n".encode())
            secret = ""
        try:
            shown += reading.decode(os.read(ours, 65_536)) if is_shown else ""
        except OSError:
            break
    until = time.monotonic() + programs.PATIENCE_SECONDS
    try:
        while (code := asked.poll()) is None:
            assert time.monotonic() < until, shown
            time.sleep(programs.PAUSE_SECONDS)
        return code, shown
    finally:
        asked.kill()
        os.close(ours)
