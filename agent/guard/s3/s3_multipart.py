"""Uploads a large file in parts, several at once. Parts that the store has from an earlier try are not sent again.

A part is read twice, to sign it and to send it, so that no part is ever held in memory.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator
from xml.sax.saxutils import escape

from agent.guard.object_store import DiskFailed, Refused, StoreFailed, Uploaded
from agent.guard.s3 import s3_answers
from agent.guard.s3.s3_answers import FoundPart, FoundUpload
from agent.guard.s3.s3_client import FORBIDDEN, NOT_FOUND, NOT_IMPLEMENTED, S3Client, S3Request

SMALLEST_PART = 8 * 1024 * 1024
MOST_PARTS, AT_ONCE = 9_000, 4
PIECE = 256 * 1024
UNTOLD = frozenset({FORBIDDEN, NOT_FOUND, NOT_IMPLEMENTED})
"""Answers of a store that keeps no list of unfinished uploads, or whose key may not read it."""
_MOST_PAGES = 20


@dataclass(frozen=True)
class FilePart:
    """A part of a file, with its digests. `md5` is empty where Python has none."""

    number: int
    begin: int
    size_bytes: int
    sha256: str
    md5: str


def part_size(size_bytes: int) -> int:
    """Return the size of each part of a file, in bytes."""
    mebibyte = 1024 * 1024
    return max(SMALLEST_PART, -(-size_bytes // MOST_PARTS // mebibyte) * mebibyte)


def pieces(file: Path, begin: int, size_bytes: int) -> Iterator[bytes]:
    """Yield a part of a file in pieces.

    Raise DiskFailed if the file has become shorter, so that no shorter object is written.
    """
    try:
        with file.open("rb") as source:
            source.seek(begin)
            left = size_bytes
            while left:
                piece = source.read(min(PIECE, left))
                if not piece:
                    raise DiskFailed(f"{file.name} became shorter while it was read")
                left -= len(piece)
                yield piece
    except OSError as failure:
        raise DiskFailed(f"{file.name} cannot be read ({failure.strerror})") from None


class S3Multipart:
    """Uploads files in parts into one bucket."""

    def __init__(self, client: S3Client) -> None:
        """Send requests with a client."""
        self._client = client

    def upload(self, key: str, file: Path, size_bytes: int) -> Uploaded:
        """Write a file as an object."""
        upload_id, there = self._begun(key)
        whole = hashlib.sha256()
        tags: dict[int, str] = {}
        md5s: list[str] = []
        with ThreadPoolExecutor(AT_ONCE, "part") as pool:
            waiting: set[Future[tuple[int, str]]] = set()
            for part in _parts(file, size_bytes, whole):
                md5s.append(part.md5)
                old = there.get(part.number)
                if old is not None and part.md5 and (old.tag, old.size_bytes) == (part.md5, part.size_bytes):
                    tags[part.number] = old.tag
                    continue
                waiting.add(pool.submit(self._send, key, upload_id, file, part))
                if len(waiting) >= AT_ONCE:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    tags.update(each.result() for each in done)
            tags.update(each.result() for each in waiting)
        self._complete(key, upload_id, tags, size_bytes)
        return Uploaded(whole.hexdigest(), _tag(md5s))

    def abort_stale(self, prefix: str, is_stale: Callable[[str, float], bool]) -> None:
        """End the unfinished uploads for which `is_stale` of key and age in seconds is true."""
        for upload in self._unfinished(prefix):
            if is_stale(upload.key, self._client.now() - upload.begun):
                request = S3Request("DELETE", upload.key, {"uploadId": upload.id})
                self._client.ask(request, accepts=(NOT_FOUND,))

    def _begun(self, key: str) -> tuple[str, dict[int, FoundPart]]:
        """Return the id of an upload of this key, begun now or in an earlier try, and its parts."""
        found = [upload for upload in self._unfinished(key) if upload.key == key]
        if found:
            newest = max(found, key=lambda upload: upload.begun)
            return newest.id, self._there(key, newest.id)
        answer = self._client.ask(S3Request("POST", key, {"uploads": ""}))
        upload_id = s3_answers.value(_text(answer.body), "UploadId")
        if not upload_id:
            raise Refused("the store began an upload without an id")
        return upload_id, {}

    def _unfinished(self, prefix: str) -> Iterator[FoundUpload]:
        """Yield the unfinished uploads below a prefix; none if the store or its key does not show them."""
        query = {"uploads": "", "prefix": prefix, "encoding-type": "url"}
        for _ in range(_MOST_PAGES):
            answer = self._client.ask(S3Request("GET", "", query), accepts=UNTOLD)
            if answer.status in UNTOLD:
                return
            text = _text(answer.body)
            yield from s3_answers.uploads(text)
            if s3_answers.value(text, "IsTruncated") != "true":
                return
            query["key-marker"] = s3_answers.value(text, "NextKeyMarker")
            query["upload-id-marker"] = s3_answers.value(text, "NextUploadIdMarker")

    def _there(self, key: str, upload_id: str) -> dict[int, FoundPart]:
        found: dict[int, FoundPart] = {}
        query = {"uploadId": upload_id}
        for _ in range(_MOST_PAGES):
            answer = self._client.ask(S3Request("GET", key, query), accepts=UNTOLD)
            if answer.status in UNTOLD:
                return {}
            text = _text(answer.body)
            found.update({part.number: part for part in s3_answers.parts(text)})
            if s3_answers.value(text, "IsTruncated") != "true":
                break
            query["part-number-marker"] = s3_answers.value(text, "NextPartNumberMarker")
        return found

    def _send(self, key: str, upload_id: str, file: Path, part: FilePart) -> tuple[int, str]:
        request = S3Request(
            "PUT",
            key,
            {"partNumber": str(part.number), "uploadId": upload_id},
            body=lambda: pieces(file, part.begin, part.size_bytes),
            size=part.size_bytes,
            sha256=part.sha256,
        )
        return part.number, self._client.ask(request).tag

    def _complete(self, key: str, upload_id: str, tags: dict[int, str], size_bytes: int) -> None:
        rows = (
            f'<Part><PartNumber>{number}</PartNumber><ETag>"{escape(tags[number])}"</ETag></Part>'
            for number in sorted(tags)
        )
        body = f"<CompleteMultipartUpload>{''.join(rows)}</CompleteMultipartUpload>".encode()
        digest = hashlib.sha256(body).hexdigest()
        request = S3Request("POST", key, {"uploadId": upload_id}, body=lambda: [body], size=len(body), sha256=digest)
        try:
            answer = self._client.ask(request)
        except StoreFailed:
            # A store forgets an upload that it has completed, and the answer to an earlier try may have been lost.
            if self._has(key, size_bytes):
                return
            raise
        # The store may say 200 before it knows.
        code, message = s3_answers.refusal(answer.body)
        if b"<Error>" in answer.body:
            raise StoreFailed(f"the upload could not be completed: {code} {message}")

    def _has(self, key: str, size_bytes: int) -> bool:
        """Return whether the store has an object of this size. No other upload than ours has its name."""
        answer = self._client.ask(S3Request("HEAD", key), accepts=UNTOLD)
        return answer.status not in UNTOLD and answer.headers.get("content-length") == str(size_bytes)


def new_md5() -> hashlib._Hash | None:
    """Return a new MD5, the store's own tag of content, or None where Python has none."""
    try:
        return hashlib.new("md5")  # noqa: S324 - nothing is kept secret by it
    except ValueError:
        return None


def _tag(md5s: list[str]) -> str:
    """Return the tag of an object by the MD5s of its parts; nothing where Python has none."""
    md5 = new_md5()
    if md5 is None:
        return ""
    md5.update(b"".join(map(bytes.fromhex, md5s)))
    return f"{md5.hexdigest()}-{len(md5s)}"


def _parts(file: Path, size_bytes: int, whole: hashlib._Hash) -> Iterator[FilePart]:
    """Yield the parts of a file, and add each to the digest of the whole."""
    each_size = part_size(size_bytes)
    for number, begin in enumerate(range(0, size_bytes, each_size), start=1):
        size = min(each_size, size_bytes - begin)
        own, md5 = hashlib.sha256(), new_md5()
        for piece in pieces(file, begin, size):
            whole.update(piece)
            own.update(piece)
            if md5 is not None:
                md5.update(piece)
        yield FilePart(number, begin, size, own.hexdigest(), md5.hexdigest() if md5 is not None else "")


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")
