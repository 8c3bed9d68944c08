"""Intervals against textbook formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from partwise.intervals import cluster_interval, t_interval


def test_t_interval_is_students() -> None:
    values = [0.2, 0.5, 0.3, 0.9, 0.4]
    expected = stats.t.interval(0.95, 4, loc=np.mean(values), scale=stats.sem(values))
    assert t_interval(values) == pytest.approx(expected)
    assert t_interval([0.3]) is None


def test_clusters_are_drawn_whole() -> None:
    """Forty clusters of ten equal values are forty observations: the interval is theirs, not that of four hundred."""
    random = np.random.Generator(np.random.Philox(1))
    centres = random.standard_normal(40)
    values, cluster = np.repeat(centres, 10), np.repeat(np.arange(40) * 7, 10)
    low, high = cluster_interval(values, cluster) or (np.nan, np.nan)
    reach = 1.96 * centres.std(ddof=1) / 40**0.5
    assert (low, high) == pytest.approx((centres.mean() - reach, centres.mean() + reach), abs=0.1 * reach)
    alone = cluster_interval(values, np.arange(400)) or (np.nan, np.nan)
    assert alone[1] - alone[0] < 0.5 * (high - low)
    order = random.permutation(400)
    assert cluster_interval(values[order], cluster[order]) == pytest.approx((low, high))
    assert cluster_interval(values, np.zeros(400, int)) is None
