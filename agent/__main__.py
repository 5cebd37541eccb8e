"""python -m agent: the same as `gpubid`, whose entry this is.

It imports nothing of ours before Ctrl-C has a meaning: loading the command line takes a second or more.
"""

import os
import signal


def main() -> None:
    """Run the command line. Until a verb begins, Ctrl-C ends the process at once and without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # With a thread for each core numpy's small products take several times the processor time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from agent.cli import main as command_line  # noqa: PLC0415 - loading is what Ctrl-C is to end

    command_line.main()


if __name__ == "__main__":
    main()
