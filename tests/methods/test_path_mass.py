"""The mass of all paths by drawing some, against the enumeration of all."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import partwise as pw
from partwise.errors import InputError
from tests.methods.test_influence_paths import WORDS, model

pytestmark = pytest.mark.filterwarnings("ignore:completeness")


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_estimates_are_unbiased_and_their_intervals_hold(cell: str) -> None:
    """Over many seeds the mean is the truth, and about nineteen of twenty intervals hold it."""
    wrapped, ids = model(cell), torch.randint(WORDS, (1, 4), generator=torch.Generator().manual_seed(2))
    every = pw.influence_paths(wrapped, ids, 0, (2, 5), points=3, rule="gauss-legendre").influence[0]
    truth = {"absolute": np.abs(every).sum(), "positive": every[every > 0].sum(), "negative": every[every < 0].sum()}
    found = [pw.path_mass(wrapped, ids, 0, (2, 5), points=3, draws=200, seed=seed) for seed in range(40)]
    for name, value in truth.items():
        estimates = np.array([one[name].item() for one in found])
        error = estimates.std(ddof=1) / len(estimates) ** 0.5
        assert abs(estimates.mean() - value) < 4 * error, name
        held = [one[f"{name}_interval"].values[0, 0] <= value <= one[f"{name}_interval"].values[0, 1] for one in found]
        assert np.mean(held) > 0.8
    assert found[0].total.item() == pytest.approx(every.sum(), abs=1e-12)
    assert (found[0].positive + found[0].negative).item() == pytest.approx(every.sum(), abs=1e-9)


def test_draws_narrow_the_interval_and_a_seed_decides_them() -> None:
    wrapped, ids = model("lstm"), torch.randint(WORDS, (2, 8), generator=torch.Generator().manual_seed(2))
    few, same, many = (pw.path_mass(wrapped, ids, 0, (2, 5), points=3, draws=draws) for draws in (200, 200, 3200))
    assert few.identical(same)
    widths = [np.diff(one.absolute_interval.values, axis=1).mean() for one in (few, many)]
    assert widths[1] < widths[0] / 2
    assert many.absolute_interval.dims == ("sentence", "end")


def test_wrong_input_is_named() -> None:
    wrapped, ids = model("lstm"), torch.zeros(1, 4, dtype=torch.int64)
    with pytest.raises(InputError, match="draws is 1; it must be 2 or more"):
        pw.path_mass(wrapped, ids, 0, (2, 5), draws=1)
    with pytest.raises(InputError, match="too small for one sentence of 4 steps at 10 points"):
        pw.path_mass(wrapped, ids, 0, (2, 5), budget=1000)
