"""The claims of the behavioural part, each with its rule, written before any result.

Tables 5 and 6 give sequence accuracy per model. A claim of size holds if our mean is the published one up to .10
(about three rows of the smallest split); a claim of direction holds if the paired difference is above zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from partwise.studies._claims import Claim, above, at_most, near
from partwise.studies._contract import Results

SPLITS = {
    "hc": ("heldout_compositions", "held-out compositions"),
    "hi": ("heldout_inputs", "held-out inputs"),
    "ht": ("heldout_tables", "held-out tables"),
    "nc": ("new_compositions", "new compositions"),
}
PUBLISHED = {  # Tables 5 and 6: one number a trained model
    "baseline": {
        "hc": (0.25, 0.16, 0.25, 0.22, 0.23),
        "hi": (0.20, 0.20, 0.23, 0.23, 0.20),
        "ht": (0.04, 0.06, 0.04, 0.03, 0.07),
        "nc": (0.00, 0.00, 0.03, 0.03, 0.06),
    },
    "guided": {
        "hc": (1.0, 1.0, 1.0, 1.0, 1.0),
        "hi": (1.0, 1.0, 1.0, 1.0, 1.0),
        "ht": (0.85, 0.98, 0.88, 0.98, 0.94),
        "nc": (0.69, 0.97, 0.81, 0.97, 0.91),
    },
}
MARGIN = 0.10


def accuracy(dataset: xr.Dataset, split: str, weights: str = "selected", **labels: str | int | float) -> np.ndarray:
    """Sequence accuracy of the members with these labels, in order of their seed."""
    chosen = np.ones(dataset.sizes["member"], bool)
    for name, value in labels.items():
        chosen &= dataset[name].values == value
    members = dataset.isel(member=np.flatnonzero(chosen)).sortby("seed")
    return np.asarray(members.accuracy.sel(weights=weights, split=SPLITS[split][0]).values, float)


def _arm(arm: str, split: str) -> Claim:
    published = round(float(np.mean(PUBLISHED[arm][split])), 3)
    table = {"baseline": "table-5", "guided": "table-6"}[arm]

    def values(results: Results) -> Sequence[float]:
        return list(accuracy(results["behaviour"], split, arm=arm))

    text = f"{arm} models reach a sequence accuracy of {published:g} on {SPLITS[split][1]}"
    return Claim(f"{table}-{split}", text, published, "size", "behaviour", near(published, MARGIN), values)


def _difference(results: Results, split: str) -> Sequence[float]:
    data = results["behaviour"]
    return list(accuracy(data, split, arm="guided") - accuracy(data, split, arm="baseline"))


def _direction(split: str) -> Claim:
    published = round(float(np.mean(PUBLISHED["guided"][split]) - np.mean(PUBLISHED["baseline"][split])), 3)
    return Claim(
        f"guided-above-baseline-{split}",
        f"guided models do better than baselines on {SPLITS[split][1]}",
        published,
        "direction",
        "behaviour",
        above(0.0),
        lambda results: _difference(results, split),
    )


def _cell(results: Results, split: str, arm: str, full_focus: str, initialisation: str, forcing: float) -> np.ndarray:
    data = results["sensitivity"]
    return accuracy(data, split, arm=arm, full_focus=full_focus, initialisation=initialisation, teacher_forcing=forcing)


def _moves(
    id: str, text: str, split: str, arm: str, to: tuple[str, str, float], rule_above: float = 0.0, down: bool = False
) -> Claim:
    """Does one change of the recipe move an arm's accuracy? Ours: the paper has no such table."""

    def values(results: Results) -> Sequence[float]:
        change = _cell(results, split, arm, *to) - _cell(results, split, arm, "yes", "uniform", 0.0)
        return list(-change if down else change)

    return Claim(id, text, None, "direction", "sensitivity", above(rule_above), values)


def _lstm(results: Results, split: str, arm: str) -> np.ndarray:
    return accuracy(results["lstm"], split, arm=arm)


def _lstm_like_gru(arm: str, split: str) -> Claim:
    def difference(results: Results) -> Sequence[float]:
        return list(_lstm(results, split, arm) - accuracy(results["behaviour"], split, arm=arm))

    text = f"{arm} LSTMs reach what {arm} GRUs reach on {SPLITS[split][1]}, up to .1 (footnote 1: very similar)"
    return Claim(f"lstm-like-gru-{arm}-{split}", text, 0.0, "size", "lstm", near(0.0, MARGIN), difference)


CLAIMS = (
    *(_direction(split) for split in SPLITS),
    Claim(
        "nc-gap-large",
        "on new compositions guided models lead by more than .3",
        round(float(np.mean(PUBLISHED["guided"]["nc"]) - np.mean(PUBLISHED["baseline"]["nc"])), 3),
        "size",
        "behaviour",
        above(0.3),
        lambda results: _difference(results, "nc"),
    ),
    Claim(
        "baseline-hc-below-half",
        "baselines get at most half of the held-out compositions right",
        0.222,
        "size",
        "behaviour",
        at_most(0.5),
        lambda results: list(accuracy(results["behaviour"], "hc", arm="baseline")),
    ),
    *(_arm(arm, split) for arm in PUBLISHED for split in SPLITS),
    _moves(
        "forcing-alone-composes",
        "teacher forcing alone makes the baseline solve held-out compositions (more than .3 above the published recipe)",
        "hc", "baseline", ("yes", "uniform", 1.0), rule_above=0.3,
    ),
    _moves(
        "pytorch-init-lifts-baseline",
        "PyTorch's own initialisation lifts the baseline on held-out compositions",
        "hc", "baseline", ("yes", "pytorch", 0.0),
    ),
    _moves(
        "guidance-needs-full-focus",
        "without full focus guided models solve fewer new compositions",
        "nc", "guided", ("no", "uniform", 0.0), down=True,
    ),
    Claim(
        "lstm-guided-above-baseline-nc",
        "with an LSTM, too, guided models do better than baselines on new compositions (footnote 1)",
        None, "direction", "lstm", above(0.0),
        lambda results: list(_lstm(results, "nc", "guided") - _lstm(results, "nc", "baseline")),
    ),
    *(_lstm_like_gru(arm, split) for arm in PUBLISHED for split in ("hc", "nc")),
)  # fmt: skip
