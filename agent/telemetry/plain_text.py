"""Text that cannot control a terminal, although a stranger may have written it, such as the name of a host."""


def plain(text: str) -> str:
    """Return text with a question mark for each character that does not print."""
    return "".join(character if character.isprintable() else "?" for character in text)
