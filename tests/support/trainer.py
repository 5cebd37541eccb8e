"""A tiny trainer: an integer that depends on every step, saved at SIGUSR1 and at the end.

With HANGS_AT it hangs for ever at that step of a run from nothing. What goes on from a checkpoint does not.
"""

import json
import sys
from pathlib import Path

from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints.checkpoint_list import CheckpointList

_CODE = """
import json, os, signal, sys, time
folder, steps, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
path, asked = folder + "/state.json", []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
os.makedirs(folder, exist_ok=True)
state, step = json.load(open(path))[:2] if os.path.exists(path) else (1, 0)
print("from", step, flush=True)
hangs_at = int(os.environ.get("HANGS_AT", "0")) if step == 0 else 0
witness = open(os.environ["WITNESS"], "a", 1) if "WITNESS" in os.environ else None
def seen():
    if witness is not None:
        print(step, time.monotonic(), file=witness)
seen()
def save():
    with open(path + ".new", "w") as out:
        json.dump([state, step, "x" * int(os.environ.get("PADDING", "0"))], out)
    os.replace(path + ".new", path)
    print("saved", step, flush=True)
while step < steps:
    step += 1
    state = (state * 31 + step) % (2**61 - 1)
    seen()
    if asked:
        asked.clear()
        save()
    if "GPUBID_PROGRESS" in os.environ:
        with open(os.environ["GPUBID_PROGRESS"] + ".new", "w") as out:
            out.write(str(step))
        os.replace(os.environ["GPUBID_PROGRESS"] + ".new", os.environ["GPUBID_PROGRESS"])
    while step == hangs_at:
        time.sleep(pause)
    time.sleep(pause)
save()
print("final", state, flush=True)
"""
ENDLESS = 10**9


def command(folder: Path | str, steps: int = ENDLESS, pause_seconds: float = 0.01) -> list[str]:
    """Return the trainer's command line."""
    return [sys.executable, "-I", "-S", "-c", _CODE, str(folder), str(steps), str(pause_seconds)]


def carried_step(notes: BucketNotes) -> int:
    """Return the step of the newest checkpoint in a bucket."""
    newest = CheckpointList(notes, "test").newest()
    assert newest is not None
    found = notes.store.get(notes.key(f"ckpt/{newest.id}/0/state.json"), 10_000)
    assert found is not None
    return int(json.loads(found.body)[1])


def final(steps: int) -> int:
    """Return the number that an uninterrupted run ends with."""
    state = 1
    for step in range(1, steps + 1):
        state = (state * 31 + step) % (2**61 - 1)
    return state
