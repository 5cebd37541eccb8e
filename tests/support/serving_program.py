"""A service as a real process: it answers health checks, GETs and POSTs, and streams tokens until a file is there."""

import shlex
from pathlib import Path

from tests.support import counter

SOURCE = """
import http.server, os, sys, time

class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path != "/stream":
            return self.answer(b"ok")
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while not os.path.exists(sys.argv[1]):
            self.wfile.write(b"6\\r\\ntoken \\r\\n")
            time.sleep(0.05)
        self.wfile.write(b"3\\r\\nend\\r\\n0\\r\\n\\r\\n")

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.02)
        self.answer(b"made")

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["SIM_PORT_8000"])), Page).serve_forever()
"""
LAST = b"end"
"""The end of a whole stream."""


def command(end: Path) -> str:
    """Return the command of a container. Its streams go on until the file `end` is there, or nobody reads them."""
    return shlex.join(counter.python(SOURCE, str(end)))
