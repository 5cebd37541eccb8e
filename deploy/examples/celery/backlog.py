"""Prints how many tasks of a Celery queue on Redis wait or run: the `demand` of its workers.

python3 backlog.py /etc/gpubid/broker    the file has the queue's address, and its password if it has one
"""

import pathlib
import sys

import redis


def backlog(address: str) -> int:
    """Return the tasks in the queue, and those that workers have and did not end."""
    with redis.Redis.from_url(address, socket_timeout=5) as queue:
        return int(queue.llen("celery")) + int(queue.hlen("unacked"))


if __name__ == "__main__":
    sys.stdout.write(f"{backlog(pathlib.Path(sys.argv[1]).read_text().strip())}\n")
