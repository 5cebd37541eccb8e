"""`make bench`: run every measurement; end with 1 when a bound does not hold."""

import sys

from tests.bench import planning

if __name__ == "__main__":
    sys.exit(0 if all([planning.measure()]) else 1)
