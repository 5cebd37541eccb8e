"""The least cost of any plan that keeps enough slots warm for a share of the steps: a linear programme.

Variables: for each block of `cold_steps` steps b and pool i, x[i, b] held and a[i, b] warm, y[b] and w[b] the same on
demand, z[b] the share of the block's steps that are met.
    minimise  sum price x + on_demand_price y
    a[i, b] <= x[i, b], a[i, b] <= x[i, b - 1], x[i, b] <= capacity; the same for w and y
    sum_i a[i, b] + w[b] >= slots z[b], z <= 1, mean of z over the judged steps >= target
A warm instance of a step was held `cold_steps` steps earlier, so the mean of a over a block is bound by the mean of x
over it and over the block before. Every plan therefore gives a solution that costs no more, and the least cost is a
lower bound. For the same reason a block's price is its lowest and its capacity the mean. The first block is not judged.

Source: the programme published with SkyServe (EuroSys'25, arXiv 2411.01438), relaxed to fractions and blocks of steps.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from agent.lab.availability.span import Setting, Span

Floats = npt.NDArray[np.float64]


class Unsolved(Exception):
    """The programme found no solution. The message is the solver's."""


def cost(span: Span, setting: Setting, target: float) -> float:
    """Return the least dollars at which the share `target` of the judged steps has all slots warm.

    Raises:
        Unsolved: the solver gave up.
        ImportError: scipy is not installed.
    """
    from scipy.optimize import linprog  # noqa: PLC0415 - an extra, and slow to import

    capacity, prices, share = _blocks(span, setting)
    pools, blocks = capacity.shape
    # Columns: x by pool and block, y by block, a by pool and block, w by block, z by block; on demand is one pool more.
    held = (pools + 1) * blocks
    costs = np.concatenate([(prices * share).ravel(), np.zeros(held + blocks)])
    most = np.concatenate([capacity.ravel(), np.full(blocks, setting.slots)])
    upper = np.concatenate([most, np.full(held, setting.slots), np.ones(blocks)])
    # The first block is not judged and warms the second: it is free, and nothing is warm in it.
    upper[held : 2 * held : blocks] = 0.0
    upper[-blocks] = 0.0
    rows, limits = _rows(pools + 1, blocks, share, setting, target)
    found = linprog(
        costs, A_ub=rows, b_ub=limits, bounds=np.column_stack([np.zeros(len(upper)), upper]), method="highs"
    )
    if not found.success:
        raise Unsolved(str(found.message))
    return float(found.fun)


def _blocks(span: Span, setting: Setting) -> tuple[Floats, Floats, Floats]:
    """Return capacity (pools, blocks), prices with on-demand's as the last row, and the hours of each judged block."""
    cold = span.cold_steps
    starts = np.arange(0, span.steps, cold)
    lengths = np.diff(np.append(starts, span.steps))
    within = np.minimum(span.capacity, setting.slots)
    capacity = np.add.reduceat(within, starts, axis=1) / lengths
    prices = np.minimum.reduceat(span.prices, starts, axis=1)
    prices = np.vstack([prices, np.full(len(starts), span.on_demand_price)])
    share = lengths * span.step_hours
    share[0] = 0.0
    return capacity, prices, share


def _rows(places: int, blocks: int, share: Floats, setting: Setting, target: float) -> tuple[Any, Floats]:
    from scipy import sparse  # noqa: PLC0415 - an extra, and slow to import

    held = places * blocks
    here, before = sparse.identity(blocks, format="csr"), sparse.eye(blocks, k=-1, format="csr")
    nothing = sparse.csr_matrix((held, blocks))
    warm = sparse.identity(held, format="csr")
    each = sparse.kron(sparse.identity(places), here)
    earlier = sparse.kron(sparse.identity(places), before)
    summed = sparse.kron(np.ones((1, places)), here)
    met = -setting.slots * here
    last = sparse.csr_matrix(-share.reshape(1, -1))
    empty = sparse.csr_matrix((blocks, held))
    rows = sparse.vstack(
        [
            sparse.hstack([-each, warm, nothing]),
            sparse.hstack([-earlier, warm, nothing]),
            sparse.hstack([empty, -summed, -met]),
            sparse.hstack([sparse.csr_matrix((1, 2 * held)), last]),
        ],
        format="csr",
    )
    limits = np.concatenate([np.zeros(2 * held + blocks), [-target * share.sum()]])
    return rows, limits
