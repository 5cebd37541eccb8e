"""The guard of a simulated instance, played by a test: its beats, checkpoints and pointer in a bucket."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from tests.support.s3_server import S3Server

CONTENT = b"weights"


@dataclass
class PlayedGuard:
    """Writes into the run's folder of a bucket as the guard of one lease."""

    server: S3Server
    root: str
    lease: str
    beats: int = 0
    """The number of the last beat."""

    def name(self, sequence: int) -> str:
        """Return the name of one of its manifests."""
        return f"ckpt/{sequence:08d}-{self.lease}.json"

    def put(self, name: str, content: object) -> None:
        """Write an object of the run's folder."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.server.put_raw(f"{self.root}/{name}", body)

    def beat(self, **changes: Any) -> None:
        """Write a beat, with the last checkpoint that was carried."""
        self.beats += 1
        told = {"version": 1, "sequence": self.beats, "lease": self.lease, "phase": "running", **changes}
        self.put(f"beat-{self.lease}.json", told)

    def carry(self, sequence: int, *, is_whole: bool = True, **changes: Any) -> None:
        """Write a checkpoint, its manifest and the pointer. `changes` are of the manifest."""
        if is_whole:
            self.put(f"ckpt/{sequence:08d}-{self.lease}/0/model.pt", CONTENT)
        self.put(self.name(sequence), {**self.manifest(sequence), **changes})
        self.point(sequence)

    def point(self, sequence: int) -> None:
        """Write the pointer."""
        self.put("latest.json", {"version": 1, "manifest": self.name(sequence), "sequence": sequence, "progress": None})

    def manifest(self, sequence: int) -> dict[str, Any]:
        """Return an honest manifest."""
        times = ("taken_wall_seconds", "taken_boot_seconds", "took_seconds", "uploaded_seconds")
        file = {
            "path": "0/model.pt",
            "size_bytes": len(CONTENT),
            "sha256": hashlib.sha256(CONTENT).hexdigest(),
            "etag": hashlib.md5(CONTENT).hexdigest(),  # noqa: S324 - the store's own
        }
        note = {"version": 1, "sequence": sequence, "lease": self.lease, "run": 1, "progress": float(sequence)}
        return {**note, **dict.fromkeys(times, 1.0), "files": [file]}

    def keep_still(self) -> None:
        """Do nothing."""
