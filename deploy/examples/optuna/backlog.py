"""A page with the number of trials that a study still wants: the `demand` of its workers.

STUDY_URL, STUDY, TRIALS   as for the workers
python backlog.py 8080     serves http://127.0.0.1:8080/backlog
"""

import http.server
import os
import sys

import optuna
from optuna.trial import TrialState


def backlog() -> int:
    """Return how many trials are still to be completed, the running ones among them."""
    study = optuna.load_study(study_name=os.environ["STUDY"], storage=os.environ["STUDY_URL"])
    done = len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))
    return max(int(os.environ["TRIALS"]) - done, 0)


class Page(http.server.BaseHTTPRequestHandler):
    """Answers the number, and 503 if the database does not: then gpubid knows that it does not know."""

    def do_GET(self) -> None:
        """Answer one request."""
        try:
            status, body = 200, f"{backlog()}\n".encode()
        except Exception as error:  # noqa: BLE001 - whatever the database raises, the number is not known
            status, body = 503, f"{type(error).__name__}\n".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing for each request."""


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
