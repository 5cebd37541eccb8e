"""The memory that a bench gives to the tables of `multi_pool_dp`.

A daemon keeps 200 MB of them. A table of a job of a hundred hours and more has 50 to 70 MB, so a bench of such jobs
built the same tables again and again: 69 for 29 distinct ones in a job of 178 h over nine pools, which took most of its
time. Cases of one problem share tables, too. The tables depend only on their keys, so more room changes no result.
"""

import os

from agent.decide.deadline import multi_pool_dp

SHARE = 0.25
"""The share of the machine's memory that all workers together may take for tables."""


def take() -> None:
    """Let this process keep tables up to its part of that share, and at least what a daemon keeps."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    multi_pool_dp.tables.most_bytes = max(multi_pool_dp.MOST_BYTES, int(SHARE * memory / (os.cpu_count() or 1)))
