"""Errors of requests to a bucket."""


class BucketError(Exception):
    """The bucket did not do it: `code` is for programs, the message a sentence for a person, without keys."""

    def __init__(self, code: str, sentence: str) -> None:
        """Take a code and the fix."""
        super().__init__(sentence)
        self.code = code


class BucketAway(BucketError):
    """The bucket's content is unknown: it did not answer, not in time, or refused. Never taken for an absence.

    `is_proven`: the store itself refused the key, by one of its own codes. A bare 403 may be a proxy's.
    """

    def __init__(self, code: str, sentence: str, *, is_proven: bool = False) -> None:
        """Take a code, what to do, and whether the store itself said it."""
        super().__init__(code, sentence)
        self.is_proven = is_proven


class BucketTaken(BucketError):
    """Another object of that name is there already."""


class BucketTooLarge(BucketError):
    """The object is larger than the caller allows; nothing of it was read."""
