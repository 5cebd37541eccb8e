"""Text for chats, in which a stranger's words neither mention people nor hide an address.

Events may contain a host's own message. In chats `@everyone` calls everybody, `<!channel>` too, and `[bill](http://...)`
or `<http://...|bill>` hides an address behind a word.
"""

import re

_APART = "\u200b"
"""A space without width: a person reads the same text, and no chat finds a mark in it."""
_MARKS = re.compile(r"@(?=\w)|<(?=[!@#:\w/])|\](?=\()")


def unmarked(text: str) -> str:
    """Return a text that chats show as it is: every mark of a mention or a link is taken apart."""
    return _MARKS.sub(lambda mark: mark[0] + _APART, text)
