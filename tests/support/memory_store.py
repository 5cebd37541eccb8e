"""A store of objects in memory with the guard's interface, for tests that need no server."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from agent.guard.object_store import Fetched, Listed, TooLarge, Uploaded


class MemoryStore:
    """Keeps objects. `before_put` is called with key and body."""

    def __init__(self) -> None:
        self.objects: dict[str, Fetched] = {}
        self.before_put: Callable[[str, bytes], None] | None = None

    def get(self, key: str, most_bytes: int) -> Fetched | None:
        found = self.objects.get(key)
        if found is not None and len(found.body) > most_bytes:
            raise TooLarge("too large")
        return found

    def put(self, key: str, body: bytes, *, tag: str | None = None, is_new: bool = False) -> bool:
        if self.before_put is not None:
            self.before_put(key, body)
        found = self.objects.get(key)
        if (is_new and found is not None) or (tag is not None and (found is None or found.tag != tag)):
            return False
        self.objects[key] = Fetched(body, hashlib.sha256(body).hexdigest())
        return True

    def upload(self, key: str, file: Path) -> Uploaded:
        self.put(key, file.read_bytes())
        return Uploaded(hashlib.sha256(file.read_bytes()).hexdigest())

    def download(self, key: str, file: Path, size_bytes: int) -> str:
        file.write_bytes(self.objects[key].body[:size_bytes])
        return hashlib.sha256(file.read_bytes()).hexdigest()

    def list(self, prefix: str, most: int) -> list[Listed]:
        rows = sorted(key for key in self.objects if key.startswith(prefix))
        return [Listed(key, len(self.objects[key].body), 1.0) for key in rows[:most]]

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)

    def abort_stale(self, prefix: str, is_stale: Callable[[str, float], bool]) -> None:
        """Do nothing: there are no unfinished uploads."""
