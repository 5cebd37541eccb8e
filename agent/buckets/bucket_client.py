"""One folder of an S3 bucket: small objects read and written with bounds on size and time.

Invariants:
1. Only the store's own word says that an object is missing; every other failure is `BucketAway`, which proves nothing.
2. Nothing larger than the caller allows is taken into memory, and no call outlasts `DEADLINE_SECONDS`.
3. Keys, signatures and the store's own texts reach no error and no log: a store may repeat a request in them. Of its
   codes only those of a closed list do.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypeVar

import obstore
from obstore import exceptions
from obstore.store import S3Store

from agent.buckets.bucket_errors import BucketAway, BucketTaken, BucketTooLarge
from agent.domain.work.carried_checkpoint import StoredObject
from agent.domain.work.guard_terms import Bucket

if TYPE_CHECKING:
    from obstore import ListStream, ObjectMeta

T = TypeVar("T")
DEADLINE_SECONDS = 10.0
PRESIGNED_FOR = timedelta(days=7)
"""The longest time that SigV4 allows."""
SEPARATOR = ":"
PAGE = 1_000
NO_SUCH_OBJECT = "<Code>NoSuchKey</Code>"
_PROOF = re.compile(
    "<Code>(AccessDenied|AllAccessDisabled|ExpiredToken|InvalidAccessKeyId|InvalidToken|SignatureDoesNotMatch)</Code>"
)
"""The codes by which S3 refuses a key, or an action with it."""
_REFUSED = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)


def key_of(secret: str) -> tuple[str, str]:
    """Return the id and the secret of a bucket's key, from the text of its credential.

    Raises:
        ValueError: the text is not KEY_ID:SECRET; the message repeats nothing of it.
    """
    key_id, _, rest = secret.partition(SEPARATOR)
    if not key_id or not rest:
        raise ValueError("is not KEY_ID:SECRET; write the bucket's key in that form, as one word")
    return key_id, rest


class BucketClient:
    """Reads and writes below the folder of one bucket."""

    def __init__(self, place: Bucket, secret: str) -> None:
        """Take where it is and the text of its credential; no request is sent yet.

        Raises:
            ValueError: as `key_of`.
        """
        key_id, rest = key_of(secret)
        self.place = place
        self._store = S3Store(
            place.name,
            prefix=place.prefix or None,
            endpoint=place.endpoint,
            region=place.region,
            access_key_id=key_id,
            secret_access_key=rest,
            virtual_hosted_style_request=False,
            client_options={"allow_http": place.is_on_this_machine, "timeout": timedelta(seconds=DEADLINE_SECONDS)},
            retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=DEADLINE_SECONDS)},
        )

    async def read(self, path: str, most_bytes: int) -> bytes | None:
        """Return an object, or None where the store says that there is none.

        Raises:
            BucketAway: the content of the bucket is unknown.
            BucketTooLarge: it is larger than `most_bytes`.
        """
        return await self._done(self._read(path, most_bytes), path)

    async def write(self, path: str, content: bytes, *, is_new: bool = False) -> None:
        """Write an object; a new one never replaces another.

        Raises:
            BucketAway: nobody knows whether it was written.
            BucketTaken: `is_new`, and one of that name is there.
        """
        mode: Literal["create", "overwrite"] = "create" if is_new else "overwrite"
        await self._done(self._store.put_async(path, content, mode=mode, use_multipart=False), path)

    async def listed(self, folder: str, most: int) -> AsyncIterator[StoredObject]:
        """Yield the objects below a folder, a page at a time; each page has the deadline of a call.

        Raises:
            BucketAway: the content of the bucket is unknown.
            BucketTooLarge: there are more than `most`.
        """
        pages = self._store.list(folder, chunk_size=PAGE)
        count = 0
        while page := await self._done(_next_page(pages), folder):
            count += len(page)
            if count > most:
                raise BucketTooLarge("too_many", f"{folder} in {self.place} has more than {most} objects")
            for row in page:
                yield StoredObject(row["path"], row["size"], (row["e_tag"] or "").strip('"'))

    async def folders(self, folder: str) -> tuple[str, ...]:
        """Return the names of the folders in a folder.

        Raises:
            BucketAway: the content of the bucket is unknown.
        """
        listed = await self._done(self._store.list_with_delimiter_async(f"{folder}/"), folder)
        return tuple(path.rstrip("/").rpartition("/")[2] for path in listed["common_prefixes"])

    def presigned(self, path: str) -> str:
        """Return an address under which anybody may fetch an object for `PRESIGNED_FOR`."""
        return obstore.sign(self._store, "GET", path, PRESIGNED_FOR)

    async def _read(self, path: str, most_bytes: int) -> bytes | None:
        try:
            answer = await self._store.get_async(path)
        except FileNotFoundError as error:
            # A missing bucket and a proxy answer 404 too: only this code is about the object.
            if NO_SUCH_OBJECT in str(error):
                return None
            raise
        if answer.meta["size"] > most_bytes:
            raise BucketTooLarge("too_large", f"{path} in {self.place} is larger than {most_bytes} bytes")
        return bytes(await answer.bytes_async())

    async def _done(self, work: Awaitable[T], path: str) -> T:
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                return await work
        except BucketTooLarge:
            raise
        except exceptions.AlreadyExistsError:
            raise BucketTaken("taken", f"{path} is in {self.place} already") from None
        except (exceptions.BaseError, OSError, ValueError) as error:
            word = _PROOF.search(str(error)) if isinstance(error, exceptions.BaseError) else None
            if word is not None or isinstance(error, _REFUSED):
                sentence = f"{self.place} refuses the key{f' ({word[1]})' if word else ''}; check its credential"
                raise BucketAway("refused", f"{sentence} and its rights", is_proven=word is not None) from None
            # The bucket itself may be missing, and a forged answer may be no HTTP at all.
            sentence = f"{self.place} at {self.place.endpoint} does not answer ({type(error).__name__})"
            raise BucketAway("away", sentence) from None


async def _next_page(pages: "ListStream[Sequence[ObjectMeta]]") -> Sequence["ObjectMeta"]:
    """Return the next objects of a listing; none at its end."""
    try:
        return await anext(pages)
    except StopAsyncIteration:
        return ()
