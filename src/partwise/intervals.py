"""Intervals: over trained models by Student's t (the unit of replication is the model, never the row), and over sentences by a
bootstrap of clusters (sentences that a model cannot tell apart up to the point of interest are one observation)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from partwise.randomness import generator

LEVEL = 0.95
_DRAWS = 2000


def t_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of the mean by Student's t; None for fewer than two values, whose spread is unknown."""
    from scipy import stats

    if len(values) < 2:
        return None
    centre = float(np.mean(values))
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    reach = float(stats.t.ppf(0.5 + LEVEL / 2, len(values) - 1)) * error
    return centre - reach, centre + reach


def cluster_interval(
    values: Float[np.ndarray, " sentence"], cluster: Int[np.ndarray, " sentence"], seed: int = 0
) -> tuple[float, float] | None:
    """The 95 % interval of the mean over sentences when whole clusters are drawn again; None for fewer than two clusters."""
    _, number = np.unique(cluster, return_inverse=True)
    sums, sizes = np.bincount(number, values), np.bincount(number)
    if len(sums) < 2:
        return None
    drawn = generator(seed, "clusters").integers(len(sums), size=(_DRAWS, len(sums)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
