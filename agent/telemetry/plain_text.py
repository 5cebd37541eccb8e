"""Text that cannot control a terminal: a host's name is a stranger's text."""


def plain(text: str) -> str:
    """Return text with a question mark for each character that does not print."""
    return "".join(character if character.isprintable() else "?" for character in text)
