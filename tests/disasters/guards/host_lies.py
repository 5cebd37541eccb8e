"""A host's false reports in the name of its guard, and its omissions. A lie lasts until the weather clears."""

from collections.abc import Callable, Mapping
from typing import Any

from agent.guard import bucket_notes

Note = Mapping[str, Any]
MOST_PROGRESS = 1e15

FALSE_BEATS: Mapping[str, Callable[[Note, float], Note]] = {
    "progress_high": lambda note, _: {**note, "progress": MOST_PROGRESS},
    "progress_falling": lambda note, now: {**note, "progress": MOST_PROGRESS - now},
    "progress_none": lambda note, _: {**note, "progress": float("nan")},
    "progress_endless": lambda note, _: {**note, "progress": 1e308},
    "many_keys": lambda note, _: {**note, **{f"k{number}": number for number in range(3000)}},
    "too_many_keys": lambda note, _: {**note, **{f"k{number}": number for number in range(8000)}},
    "foreign_lease": lambda note, _: {**note, "lease": "0123456789abcdef"},
    "from_the_future": lambda note, _: {**note, "sequence": 2**53, "boot_seconds": 1e12, "upload_lag_seconds": 0.0},
    "says_done": lambda note, _: {**note, "phase": "done"},
    "says_failed": lambda note, _: {**note, "phase": "failed"},
    "says_checkpoint": lambda note, _: {**note, "manifest": f"ckpt/00000099-{note['lease']}.json"},
}
SILENT = frozenset({"mute", "stale"})
OF_WORK = ("deaf", "false_answer", "objects_missing", "other_checksum", "pointer_behind", "future_manifest")
OF_CHECKS = ("fewer_gpus", "other_model")
OTHER_CARD = "GeForce GTX 1050"
OF_NOTES = ("false_done", "false_end", "false_switch")
"""Notes that a host writes once, whatever its work does."""
ALL = (*FALSE_BEATS, "mute", "stale", "truncated", *OF_WORK, *OF_NOTES, *OF_CHECKS)


class HostLies:
    """The lies of one guard."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self.has_lied: set[str] = set()
        """All lies so far, also those that are over."""

    def tell(self, lie: str) -> None:
        """Begin a lie."""
        self._told.add(lie)
        self.has_lied.add(lie)

    def clear(self) -> None:
        """Report the truth from now on."""
        self._told.clear()

    def says(self, lie: str) -> bool:
        """Return whether a lie is active now."""
        return lie in self._told

    def beat(self, note: Note, now: float) -> bytes | None:
        """Return a beat as it is written; None where none is."""
        if self._told & SILENT:
            return None
        for lie in sorted(self._told & FALSE_BEATS.keys()):
            note = FALSE_BEATS[lie](note, now)
        body = bucket_notes.encoded(note)
        return body[: len(body) // 2] if self.says("truncated") else body

    def stored(self, body: bytes) -> bytes | None:
        """Return what really goes into the bucket for a file, or None where nothing does."""
        if self.says("objects_missing"):
            return None
        return body[::-1] if self.says("other_checksum") else body

    def check(self, gpu: str, gpus: int, memory_mb: int) -> Note:
        """Return the result of the check of the host."""
        name = OTHER_CARD if self.says("other_model") else gpu
        count = gpus - 1 if self.says("fewer_gpus") else gpus
        each = {"name": name, "memory_mb": memory_mb, "uncorrected_errors": 0}
        return {"tool": "ok", "gpu_count": count, "gpus": [each] * count, "cuda_starts": True, "matmul_tflops": 60.0}
