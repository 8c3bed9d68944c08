"""The claims about composition emerging over training (ours: the paper looks at finished models only)."""

from __future__ import annotations

import numpy as np

from partwise.studies._claims import Claim, above
from partwise.studies._contract import Results
from partwise.studies.attentive_guidance.claims._values import guided_less_baseline, of_arm


def _size_falls(results: Results) -> list[float]:
    sizes = results["emergence"]["size"].sel(target="encoder hidden, table")
    return list(of_arm(sizes.isel(epoch=0), "guided") - of_arm(sizes.isel(epoch=-1), "guided"))


def _early_gap(results: Results) -> list[float]:
    """Over epochs 1 to 20: how much smaller guided groups are than baseline groups, paired by seed."""
    sizes = results["emergence"]["size"].sel(target="encoder hidden, table")
    early = sizes.isel(epoch=np.flatnonzero((sizes.epoch.values >= 1) & (sizes.epoch.values <= 20)))
    return [-value for value in guided_less_baseline(early)]


CLAIMS = (
    Claim(
        "group-shrinks-with-training",
        "the group that carries the table in guided encoders shrinks from the untrained model to the trained one",
        None, "direction", "emergence", above(0.0), _size_falls,
    ),
    Claim(
        "group-smaller-early",
        "guided groups are smaller than baseline groups already in the first 20 epochs",
        None, "direction", "emergence", above(0.0), _early_gap,
    ),
)  # fmt: skip
