"""Every market's bench; every card is played on each, but for those it is exempt from with a reason."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from tests.markets import bench_dstack, bench_mithril, bench_runpod
from tests.markets.bench import Bench, vast_bench

BENCHES: dict[str, Callable[..., AbstractAsyncContextManager[Bench]]] = {
    "vast": vast_bench,
    "runpod": bench_runpod.runpod_bench,
    "mithril": bench_mithril.mithril_bench,
    "dstack": bench_dstack.dstack_bench,
}
EXEMPT: Mapping[str, Mapping[str, str]] = {
    "vast": {},
    "runpod": bench_runpod.EXEMPT,
    "mithril": bench_mithril.EXEMPT,
    "dstack": bench_dstack.EXEMPT,
}
