"""One run with interruptions at a known rate: their number, and the paid hours beyond the work.

Work is done in stretches of `interval` hours, each followed by `write` hours that make it safe. An interrupted stretch
begins again after `restore` hours, which may be interrupted too. With a memoryless hazard h, s the stretch with its
write and R the restore:

- interruptions in one stretch: exp(hR) (exp(hs) - 1) in the mean;
- running hours of one stretch: those divided by h (Daly 2006, equation 13);
- the first try succeeds with p = exp(-hs), each later one with p' = exp(-h(R+s)), so the number of interruptions is 0
  with chance p and else geometric: its second moment is (1 - p)(2 - p') / p'^2 (Ross, Introduction to Probability
  Models, on the geometric distribution). Stretches are independent.
"""

import math
from dataclasses import dataclass

_NEVER = 300.0
"""The largest exponent: beyond it a run does not end."""
_NO_HAZARD = 1e-12


@dataclass(frozen=True, slots=True)
class Run:
    """A run in hours: `work` in total; `interval` of work between checkpoints, each taking `write`; `restore`."""

    work: float
    interval: float
    write: float = 0.0
    restore: float = 0.0

    @property
    def stretches(self) -> float:
        """The number of stretches; the last may be a part of one."""
        return self.work / self.interval

    @property
    def stretch(self) -> float:
        """Hours of one stretch, its checkpoint written."""
        return self.interval + self.write

    @property
    def least_hours(self) -> float:
        """Running hours without any interruption."""
        return self.restore + self.stretches * self.stretch


@dataclass(frozen=True, slots=True)
class Losses:
    """The effect of interruptions on a run: their number, the chance of none, and running hours lost to each.

    Hours are those run again or spent restoring; means and variances.
    """

    number: float
    number_variance: float
    none: float
    hours_each: float
    hours_each_variance: float


NOTHING = Losses(0.0, 0.0, 1.0, 0.0, 0.0)


def losses(run: Run, hazard: float) -> Losses | None:
    """Return the effect of interruptions at `hazard` per hour; None if the run would not end in any useful time."""
    if hazard * run.stretch < _NO_HAZARD:
        return NOTHING
    again = hazard * (run.restore + run.stretch)
    if again > _NEVER:
        return None
    first, later = math.exp(-hazard * run.stretch), math.exp(-again)
    mean = -math.expm1(-hazard * run.stretch) / later
    second = (1.0 - first) * (2.0 - later) / later**2
    number = run.stretches * mean
    hours_each = 1.0 / hazard - run.stretches * run.stretch / number
    return Losses(
        number,
        run.stretches * max(second - mean**2, 0.0),
        math.exp(-hazard * run.stretch * run.stretches),
        max(hours_each, 0.0),
        _truncated_variance(hazard, run.restore + run.stretch),
    )


def _truncated_variance(hazard: float, longest: float) -> float:
    """Return the variance of an exponential lifetime that ends before `longest`."""
    reach = hazard * longest
    if reach < 1e-3:  # noqa: PLR2004 - nearly uniform, and the formula would lose all digits
        return longest**2 / 12.0
    share = reach / math.expm1(reach)
    return (1.0 - share**2 * math.exp(reach)) / hazard**2
