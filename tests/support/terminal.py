"""A person at a terminal: types answers into a program and reads what it shows."""

import os
import pty
import select
import subprocess
import termios
from pathlib import Path

from tests.support import programs

MOST_LOOKS = 400


def typed(
    words: list[str], place: Path, answers: list[str], secret: str = "", key: str | None = None
) -> tuple[int, str]:
    """Run a verb at a terminal, with a key of the market or none; type the answers at once, the secret when asked."""
    ours, theirs = pty.openpty()
    environment = programs.environment(place, VAST_API_KEY=key, TERM="dumb")
    asked = subprocess.Popen(words, cwd=place, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    shown = ""
    for _ in range(MOST_LOOKS):
        if not select.select([ours], [], [], 0.2)[0] and asked.poll() is not None:
            break
        # A hidden prompt throws away what was typed before the echo went off.
        if secret and "it is not shown" in shown and not termios.tcgetattr(ours)[3] & termios.ECHO:
            os.write(ours, f"{secret}\n".encode())
            secret = ""
        try:
            shown += os.read(ours, 65_536).decode() if select.select([ours], [], [], 0)[0] else ""
        except OSError:
            break
    try:
        return asked.wait(20), shown
    finally:
        asked.kill()
        os.close(ours)
