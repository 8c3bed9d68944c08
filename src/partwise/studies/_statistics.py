"""Intervals over trained models. The unit of replication is the model, never the row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LEVEL = 0.95


def t_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of the mean by Student's t; None for fewer than two values, whose spread is unknown."""
    from scipy import stats

    if len(values) < 2:
        return None
    centre = float(np.mean(values))
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    reach = float(stats.t.ppf(0.5 + LEVEL / 2, len(values) - 1)) * error
    return centre - reach, centre + reach
