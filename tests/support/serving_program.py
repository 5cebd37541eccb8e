"""A service as a real process: it answers health checks, GETs and POSTs, and streams tokens."""

import shlex

from tests.support import counter

SOURCE = """
import http.server, os, time

class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path != "/stream":
            return self.answer(b"ok")
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for token in range(60):
            self.wfile.write(b"6\\r\\ntoken \\r\\n")
            time.sleep(0.05)
        self.wfile.write(b"0\\r\\n\\r\\n")

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
TOKENS = b"token " * 60
"""A whole stream; it takes three seconds."""


def command() -> str:
    """Return the command of a container."""
    return shlex.join(counter.python(SOURCE))
