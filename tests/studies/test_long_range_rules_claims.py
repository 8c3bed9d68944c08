"""How the study's claims read its results, on results written by hand."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from partwise.studies.long_range_rules import STUDY

CLAIMS = {claim.id: claim for claim in STUDY.claims}
EPOCHS = [0, 1, 2, 3, 10]  # early is 1, 2 and 3


def readings(members: list[dict[str, object]]) -> xr.Dataset:
    """`open`, `conduit` and `true` are P(close) over epochs on unseen conduits; on seen ones, half of it."""
    names = ("conduit", "occurrences", "setting", "copies", "momentum", "weight_decay", "seed")
    defaults = {"setting": "random", "copies": 0, "momentum": 0.0, "weight_decay": 0.0}
    rows = [defaults | member for member in members]
    both = np.array([[row["open"], row["by_conduit"]] for row in rows], float)  # member, phrase, epoch
    unseen = np.moveaxis(both, -1, 0)  # epoch, member, phrase
    probability = np.stack([unseen, unseen / 2], axis=2)
    true = np.array([row["true"] for row in rows], float).T
    return xr.Dataset(
        {
            "probability": (("epoch", "member", "windows", "phrase"), probability),
            "log_probability": (("epoch", "member", "windows", "phrase"), np.log10(probability + 1e-30)),
            "true_probability": (("epoch", "member", "windows"), np.stack([true, true / 2], axis=-1)),
            "error": (("epoch", "member"), np.full(true.shape, 1e-7)),
        },
        {"epoch": EPOCHS, "windows": ["unseen", "seen"], "phrase": ["open", "conduit"]}
        | {name: ("member", [row[name] for row in rows]) for name in names},
        {"shown_epoch": 3},
    )


def member(
    seed: int, conduit: int, occurrences: int, open_: list[float], true: list[float] | None = None, **more: object
) -> dict:
    return {"seed": seed, "conduit": conduit, "occurrences": occurrences, "open": open_, "true": true or [0.1] * 5,
            "by_conduit": [0.001 * conduit] * 5} | more  # fmt: skip


def test_more_examples_are_needed_where_less_of_the_grid_is_learned_at_the_epoch_shown() -> None:
    found = readings(
        [
            member(seed, conduit, n, [0, 0, 0, value + 0.01 * seed, 0.99])
            for seed in (1, 0)
            for conduit, values in ((2, (0.1, 0.9)), (8, (0.1, 0.4)))
            for n, value in zip((10, 100), values, strict=True)
        ]
    )
    assert CLAIMS["longer-needs-more-2-8"].values({"frequency": found}) == pytest.approx([0.25, 0.25])
    assert CLAIMS["longer-needs-more-2-4"].values({"frequency": found}) == []  # no models of that length here
    assert CLAIMS["open-above-conduit-8"].values({"frequency": found}) == pytest.approx([0.4 - 0.008, 0.41 - 0.008])
    assert CLAIMS["conduit-low-8"].values({"frequency": found}) == pytest.approx([0.008, 0.008])
    assert CLAIMS["rare-open-low"].values({"frequency": found}) == pytest.approx([0.1, 0.11])
    assert CLAIMS["rare-conduit-declines"].values({"frequency": found}) == pytest.approx([np.log10(2 / 8)] * 2)
    assert CLAIMS["error-small-frequency"].values({"frequency": found}) == pytest.approx([1e-7] * 8)


def predictability() -> xr.Dataset:
    arms = [("unpredictable", 0, [9, 0.0, 0.1, 0.2, 0.9]), ("predictable", 100, [9, 0.3, 0.3, 0.6, 0.5]),
            ("predictable", 1000, [9, 0.0, 0.0, 0.0, 0.0])]  # fmt: skip
    return readings(
        [
            member(
                seed, 8, 1000, [value + 0.05 * seed for value in curve], [v / 3 for v in curve], setting=setting, copies=copies
            )
            for seed in (0, 1)
            for setting, copies, curve in reversed(arms)
        ]
    )


def test_early_is_the_first_three_tenths_without_the_untrained_model_and_late_is_the_last_epoch() -> None:
    results = {"predictability": predictability()}
    assert CLAIMS["early-unseen-8-some"].values(results) == pytest.approx([0.3, 0.3])
    assert CLAIMS["early-unseen-8-many"].values(results) == pytest.approx([-0.1, -0.1])
    assert CLAIMS["late-unseen-8-some"].values(results) == pytest.approx([0.4, 0.4])
    assert CLAIMS["late-seen-8-many"].values(results) == pytest.approx([0.45, 0.45])
    assert CLAIMS["early-unseen-8-some-true"].values(results) == pytest.approx([0.1, 0.1])
    assert CLAIMS["late-seen-8-some-true"].values(results) == pytest.approx([0.4 / 6] * 2)
    assert CLAIMS["late-unseen-2-some"].values(results) == []


def test_the_fault_is_compared_with_both_arms() -> None:
    fault = readings([member(s, 8, 1000, [0, 0, 0, 0, 0.2 * s], setting="reported-fault", copies=990) for s in (1, 0)])
    results = {"predictability": predictability(), "fault": fault}
    assert CLAIMS["fault-inhibits"].values(results) == pytest.approx([0.9, 0.95 - 0.2])
    assert CLAIMS["fault-inhibits-more"].values(results) == pytest.approx([0.0, 0.05 - 0.2])


def test_momentum_and_decay_are_compared_with_the_same_cell_without_them() -> None:
    frequency = readings([member(s, 4, 1000, [0, 0.5, 0.5, 0.5, 0.5 + s]) for s in (0, 1)] + [member(0, 8, 1000, [9] * 5)])
    changed = readings(
        [member(s, 4, 1000, [0] * 5, momentum=0.9) for s in (1, 0)]
        + [member(s, 4, 1000, [1] * 5, weight_decay=1e-4) for s in (0, 1)]
    )
    results = {"frequency": frequency, "optimiser": changed}
    assert CLAIMS["momentum-slows"].values(results) == pytest.approx([0.4, 0.6])
    assert CLAIMS["weight-decay-slows"].values(results) == pytest.approx([-0.6, -0.4])


def test_flow_is_compared_within_models_and_between_arms() -> None:
    values = np.zeros((5, 4, 2))  # epoch, member, (unseen, seen)
    values[1:4, 0] = [1.0, 1.5]
    values[1:4, 1] = [2.0, 2.1]
    values[1:4, 2] = [0.0, 0.2]
    values[1:4, 3] = [0.0, -0.1]
    found = xr.Dataset(
        dict.fromkeys(("hidden", "state", "message"), (("epoch", "member", "windows"), values)),
        {"epoch": EPOCHS, "windows": ["unseen", "seen"], "conduit": ("member", [8] * 4), "seed": ("member", [0, 1, 0, 1]),
         "setting": ("member", ["predictable"] * 2 + ["unpredictable"] * 2), "copies": ("member", [100, 100, 0, 0])},
    )  # fmt: skip
    assert CLAIMS["flow-state-seen-above-unseen"].values({"flow": found}) == pytest.approx([0.5, 0.1])
    assert CLAIMS["flow-message-predictable-above"].values({"flow": found}) == pytest.approx([1.5 - 0.2, 2.1 + 0.1])
