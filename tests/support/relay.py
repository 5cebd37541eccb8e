"""`python -m tests.support.relay HERE PORT THERE PORT`: pass on whatever arrives at one address to another one.

A simulated market listens on loopback alone, and an operator's HTTP may only go to loopback. So a box with a network of
its own has a relay on its loopback, which crosses the wire to a relay on this machine.
"""

import asyncio
import contextlib
import sys
from asyncio import StreamReader, StreamWriter

CHUNK_BYTES = 65_536


async def serve(here: str, port: int, there: str, its_port: int) -> None:
    """Pass on each connection to `here` until this is cancelled."""

    async def accepted(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            its_reader, its_writer = await asyncio.open_connection(there, its_port)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(_passed(reader, its_writer), _passed(its_reader, writer))

    async with await asyncio.start_server(accepted, here, port) as server:
        await server.serve_forever()


async def _passed(reader: StreamReader, writer: StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(CHUNK_BYTES):
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
        await writer.wait_closed()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
