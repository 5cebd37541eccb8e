"""A bucket of S3 as a store of objects."""

from __future__ import annotations

import hashlib
import http.client
import os
from pathlib import Path
from typing import BinaryIO, Callable

from agent.guard.guard_clock import GuardClock
from agent.guard.guard_settings import BucketPlace
from agent.guard.object_store import DiskFailed, Fetched, Listed, Refused, Unreachable, Uploaded
from agent.guard.s3 import s3_answers
from agent.guard.s3.s3_client import CHANGED, CONFLICT, NOT_FOUND, PARTIAL, TRIES, S3Client, S3Request
from agent.guard.s3.s3_multipart import PIECE, SMALLEST_PART, S3Multipart, new_md5, pieces
from agent.guard.s3.signature import SigningKey


class S3Objects:
    """The objects of one bucket."""

    def __init__(self, place: BucketPlace, clock: GuardClock) -> None:
        """Use a bucket with its key."""
        key = SigningKey(place.key_id, place.secret, place.token, place.region)
        self._client = S3Client(place.endpoint, place.name, key, clock)
        self._multipart = S3Multipart(self._client)

    def close(self) -> None:
        """Close idle connections."""
        self._client.close()

    def get(self, key: str, most_bytes: int) -> Fetched | None:
        """Return an object, or None if there is none. Raise TooLarge if it has more than `most_bytes`."""
        answer = self._client.ask(S3Request("GET", key), accepts=(NOT_FOUND,), most_bytes=most_bytes)
        if answer.status != NOT_FOUND:
            return Fetched(answer.body, answer.tag)
        code, message = s3_answers.refusal(answer.body)
        if code == "NoSuchBucket":
            raise Refused(f"there is no such bucket: {message}", NOT_FOUND)
        return None

    def put(self, key: str, body: bytes, *, tag: str | None = None, is_new: bool = False) -> bool:
        """Write a small object.

        Return False if the present object has another tag than `tag`, or if `is_new` and there is one.
        """
        headers = {"if-none-match": "*"} if is_new else {"if-match": f'"{tag}"'} if tag is not None else {}
        digest = hashlib.sha256(body).hexdigest()
        request = S3Request("PUT", key, headers=headers, body=lambda: [body], size=len(body), sha256=digest)
        answer = self._client.ask(request, accepts=(CHANGED, CONFLICT, NOT_FOUND) if headers else ())
        return answer.status not in {CHANGED, CONFLICT, NOT_FOUND}

    def upload(self, key: str, file: Path) -> Uploaded:
        """Write a file as an object. Parts from an earlier try are not sent again."""
        size = _size(file)
        if size > SMALLEST_PART:
            return self._multipart.upload(key, file, size)
        digest, md5 = hashlib.sha256(), new_md5()
        for piece in pieces(file, 0, size):
            digest.update(piece)
            if md5 is not None:
                md5.update(piece)
        sha256 = digest.hexdigest()
        self._client.ask(S3Request("PUT", key, body=lambda: pieces(file, 0, size), size=size, sha256=sha256))
        return Uploaded(sha256, md5.hexdigest() if md5 is not None else "")

    def download(self, key: str, file: Path, size_bytes: int) -> str:
        """Read an object of `size_bytes` into a file, from the file's end on. Return the SHA-256 of the whole."""
        try:
            with file.open("ab+") as out:
                sink = _Sink(out, size_bytes)
                self._read_whole(key, sink)
                return sink.sha256
        except OSError as failure:
            raise DiskFailed(f"{file.name} cannot be written ({failure.strerror})") from None

    def _read_whole(self, key: str, sink: _Sink) -> None:
        failures = 0
        while sink.left:
            before = sink.left
            try:
                self._read_on(key, sink)
            except Unreachable:
                # A failure after progress is a new one.
                failures = failures + 1 if sink.left == before else 1
                if failures >= TRIES:
                    raise
                self._client.pause(failures)

    def list(self, prefix: str, most: int) -> list[Listed]:
        """Return at most `most` objects whose keys begin with `prefix`."""
        found: list[Listed] = []
        query = {"list-type": "2", "prefix": prefix, "encoding-type": "url"}
        while len(found) < most:
            text = self._client.ask(S3Request("GET", "", query)).body.decode("utf-8", "replace")
            now = self._client.now()
            rows = [row for row in s3_answers.objects(text) if row.key.startswith(prefix)]
            found += [Listed(row.key, row.size_bytes, now - row.written) for row in rows]
            token = s3_answers.value(text, "NextContinuationToken")
            if s3_answers.value(text, "IsTruncated") != "true" or not token or not rows:
                break
            query["continuation-token"] = token
        return found[:most]

    def delete(self, key: str) -> None:
        """Remove an object. A missing object is no error."""
        self._client.ask(S3Request("DELETE", key), accepts=(NOT_FOUND,))

    def abort_stale(self, prefix: str, is_stale: Callable[[str, float], bool]) -> None:
        """End the unfinished uploads for which `is_stale` of key and age in seconds is true."""
        self._multipart.abort_stale(prefix, is_stale)

    def _read_on(self, key: str, sink: _Sink) -> None:
        """Read an object from the end of the sink on, as far as the connection lasts."""
        headers = {"range": f"bytes={sink.size}-{sink.size + sink.left - 1}"} if sink.size else {}
        with self._client.opened(S3Request("GET", key, headers=headers), (NOT_FOUND,)) as response:
            if response.status == NOT_FOUND:
                raise Refused(f"{key} is not there", NOT_FOUND)
            if sink.size and response.status != PARTIAL:
                raise Refused("the store cannot read from the middle of an object")
            while sink.left:
                sink.take(_piece(response, sink.left))


class _Sink:
    """A file that is filled up to a size, and the digest of its content."""

    def __init__(self, file: BinaryIO, size_bytes: int) -> None:
        """Continue where the file ends."""
        self._file = file
        self._digest = hashlib.sha256()
        file.truncate(min(file.seek(0, os.SEEK_END), size_bytes))
        file.seek(0)
        for piece in iter(lambda: file.read(PIECE), b""):
            self._digest.update(piece)
        self.size = file.tell()
        self.left = size_bytes - self.size

    @property
    def sha256(self) -> str:
        """Return the digest of the whole file."""
        return self._digest.hexdigest()

    def take(self, piece: bytes) -> None:
        """Add bytes that came."""
        self._file.write(piece)
        self._digest.update(piece)
        self.size += len(piece)
        self.left -= len(piece)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as failure:
        raise DiskFailed(f"{file.name} cannot be read ({failure.strerror})") from None


def _piece(response: http.client.HTTPResponse, most: int) -> bytes:
    try:
        piece = response.read(min(PIECE, most))
    except (OSError, http.client.HTTPException) as failure:
        raise Unreachable(f"the connection was lost ({failure})") from None
    if not piece:
        raise Unreachable("the connection ended early")
    return piece
