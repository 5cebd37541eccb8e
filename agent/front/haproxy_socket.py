"""The runtime socket of HAProxy: one line of commands, one answer, with bounds on time and size."""

import asyncio
from pathlib import Path

DEADLINE_SECONDS = 1.0
MOST_ANSWER = 4 << 20
MOST_LINE = 15_000
"""HAProxy reads at most a buffer of 16 kB as one line."""
_QUIET = ("IP changed from", "port changed from", "no need to change", "nothing changed")
"""Beginnings and parts of answers that report a change and no error."""


class ProxyUnreachableError(Exception):
    """The proxy's socket gave no whole answer in time; nothing is known of its servers."""


async def ask(path: Path, line: str) -> str:
    """Return the answer of a proxy to one line of commands.

    Raises:
        ProxyUnreachableError: with a sentence that names the socket.
    """
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            reader, writer = await asyncio.open_unix_connection(str(path))
            try:
                writer.write(f"{line}\n".encode())
                await writer.drain()
                return (await _read(reader, path)).decode("utf-8", "replace")
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        why = "no answer within a second" if isinstance(error, TimeoutError) else (error.strerror or str(error))
        raise ProxyUnreachableError(f"{path} cannot be used ({why})") from error


async def order(path: Path, commands: tuple[str, ...]) -> None:
    """Carry out commands in their order.

    Raises:
        ProxyUnreachableError: it did not answer, or refused a command; some commands may have been carried out.
    """
    for line in _lines(commands):
        for said in (await ask(path, line)).splitlines():
            if said.strip() and not any(part in said for part in _QUIET):
                raise ProxyUnreachableError(f"{path} refused a command: {said.strip()[:200]}")


def _lines(commands: tuple[str, ...]) -> list[str]:
    lines: list[str] = []
    for command in commands:
        if lines and len(lines[-1]) + len(command) + 1 <= MOST_LINE:
            lines[-1] += f";{command}"
        else:
            lines.append(command)
    return lines


async def _read(reader: asyncio.StreamReader, path: Path) -> bytes:
    parts = bytearray()
    while part := await reader.read(1 << 16):
        parts += part
        if len(parts) > MOST_ANSWER:
            raise ProxyUnreachableError(f"{path} answers more than {MOST_ANSWER >> 20} MB")
    return bytes(parts)
