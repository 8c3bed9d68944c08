"""How the study's claims read its results, on results written by hand."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from partwise.studies.attentive_guidance import STUDY

CLAIMS = {claim.id: claim for claim in STUDY.claims}


def pruning() -> xr.Dataset:
    """Three guided models; before training on, and after; by the strongest units and by random ones."""
    kinds, of = ["strongest"] * 3 + ["random"] * 3, [0, 1, 2] * 2
    before, after = [0.2, 0.0, 0.1, 0.1, 0.0, 0.0], [0.9, 0.8, 0.7, 0.9, 0.9, 0.5]
    return xr.Dataset(
        {
            "before": (("split", "member"), [before]),
            "accuracy": (("weights", "split", "member"), [[after]]),
        },
        {"split": ["new_compositions"], "weights": ["selected"], "kind": ("member", kinds), "of": ("member", of)},
    )


def test_a_pair_of_pruned_models_that_both_fail_is_left_out() -> None:
    results = {"pruning": pruning()}
    assert CLAIMS["strongest-above-random-before"].values(results) == pytest.approx([0.1, np.nan, 0.1], nan_ok=True)
    assert CLAIMS["strongest-above-random-after"].values(results) == pytest.approx([0.0, -0.1, 0.2])


def substitution() -> dict[str, xr.Dataset]:
    """Two donors, two hosts; the guided hosts had .8 and .6 before they got a baseline's encoder."""
    pairs = [(0, 0), (1, 1), (1, 0), (0, 1)]
    accuracy = [0.5, 0.4, 0.3, 0.1]
    names = {"component": ["encoder"] * 4, "arm": ["guided"] * 4, "donor": [d for d, _ in pairs], "host": [h for _, h in pairs]}
    coords = {"weights": ["selected"], "split": ["new_compositions"]}
    after = xr.Dataset(
        {"accuracy": (("weights", "split", "member"), [[accuracy]])}, coords | {k: ("member", v) for k, v in names.items()}
    )
    before = xr.Dataset(
        {"accuracy": (("weights", "split", "member"), [[[0.8, 0.6]]])},
        coords | {"arm": ("member", ["guided"] * 2), "seed": ("member", [0, 1])},
    )
    return {"substitution": after, "behaviour": before}


def test_transplants_are_averaged_by_donor_and_compared_with_their_own_host() -> None:
    results = substitution()
    assert CLAIMS["table-4-guided-encoder"].values(results) == pytest.approx([0.3, 0.35])
    cost = [((0.8 - 0.5) + (0.6 - 0.1)) / 2, ((0.6 - 0.4) + (0.8 - 0.3)) / 2]
    assert CLAIMS["encoder-matters"].values(results) == pytest.approx(cost)


def test_a_difference_of_arms_is_paired_by_seed() -> None:
    """Members out of order: baseline 1, guided 0, guided 1, baseline 0."""
    embedding = xr.Dataset(
        {"norm": (("row", "member"), [[1.0, 4.0, 9.0, 2.0], [5.0, 5.0, 5.0, 5.0]])},
        {"row": ["000", "<sos>"], "arm": ("member", ["baseline", "guided", "guided", "baseline"])}
        | {"seed": ("member", [1, 0, 1, 0])},
    )
    assert CLAIMS["guided-larger-embedding"].values({"embedding": embedding}) == pytest.approx([4.0 - 2.0, 9.0 - 1.0])
    assert CLAIMS["start-row-equal"].values({"embedding": embedding}) == pytest.approx([0.0, 0.0])
