"""The claims of section 4.2 (Figure 3), of the introduction (gradient flow), of section 3 (optimiser), and our controls.

"Early" is the mean over the first three tenths of training, "in the long run" the last epoch. Arms are paired by seed. The
paper does not say whether Figure 3 reads conduits that the model has seen, so both are claims of their own, and so is what
the model itself says (decomposition leaves the conduit out; the model does not).
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from partwise.studies._claims import Claim, above
from partwise.studies._contract import Results
from partwise.studies.long_range_rules.claims._values import cell, early, late, numbers, paired
from partwise.studies.long_range_rules.readings import KINDS
from partwise.studies.long_range_rules.recipe import PRESETS

LONGEST = max(PRESETS["paper"].conduits_predicted)
COPIES = {"some": "as often as the paper's text says (m = 100; quick: 50)", "many": "as often as the corpus holds (m = 1,000)"}


def _arm(results: Results, conduit: int, arm: str) -> xr.Dataset:
    """`arm`: none (unpredictable), some or many (predictable, few or many copies)."""
    found = results["predictability"]
    if arm == "none":
        return cell(found, conduit=conduit, setting="unpredictable")
    copies = sorted({int(value) for value in found.copies.values if value})
    place = list(COPIES).index(arm)
    return cell(found, conduit=conduit, copies=copies[place] if place < len(copies) else -1)


def _reading(found: xr.Dataset, kind: str, by: str) -> xr.DataArray:
    values = found.true_probability if by == "true" else found.probability.sel(phrase="open")
    return values.sel(windows=kind)


def _when(which: str, conduit: int, arm: str, kind: str, by: str) -> Claim:
    def lead(results: Results) -> list[float]:
        predictable, unpredictable = (_reading(_arm(results, conduit, a), kind, by) for a in (arm, "none"))
        return paired(early(predictable), early(unpredictable)) if which == "early" else paired(
            late(unpredictable), late(predictable)
        )  # fmt: skip

    effect = "promotes early learning" if which == "early" else "inhibits learning in the long run"
    says = "the model's own P(close)" if by == "true" else "P(close) by the open symbol"
    return Claim(
        f"{which}-{kind}-{conduit}-{arm}" + ("-true" if by == "true" else ""),
        f"a conduit of {conduit} words copied elsewhere {COPIES[arm]} {effect} of the rule ({says}, {kind} conduits)",
        None, "direction", "predictability", above(0.0), lead,
    )  # fmt: skip


def _fault(id: str, text: str, other: str) -> Claim:
    def lower(results: Results) -> list[float]:
        spoiled = late(_reading(results["fault"].sortby("seed"), "unseen", "decomposition"))
        return paired(late(_reading(_arm(results, LONGEST, other), "unseen", "decomposition")), spoiled)

    return Claim(id, text, None, "direction", "fault", above(0.0), lower)


def _flow(name: str, what: str) -> Claim:
    def seen_above_unseen(results: Results) -> list[float]:
        found = cell(results["flow"], conduit=LONGEST, setting="predictable")
        fewest = cell(found, copies=int(found.copies.values.min()))
        return numbers(early(fewest[name].sel(windows="seen") - fewest[name].sel(windows="unseen")))

    return Claim(
        f"flow-{name}-seen-above-unseen",
        f"early in training, {what} through conduits that the model has seen elsewhere than through ones it has not "
        f"(difference of log10; conduits of {LONGEST} words, few copies)",
        None, "direction", "flow", above(0.0), seen_above_unseen,
    )  # fmt: skip


def _flow_arms(name: str, what: str) -> Claim:
    def predictable_above(results: Results) -> list[float]:
        found = cell(results["flow"], conduit=LONGEST)
        copies = sorted({int(value) for value in found.copies.values})[:2]
        one, other = (early(cell(found, copies=m)[name].sel(windows="seen")) for m in reversed(copies))
        return paired(one, other)

    return Claim(
        f"flow-{name}-predictable-above",
        f"early in training, {what} through the conduits of its own corpus where they are predictable than where they are not "
        f"(difference of log10; conduits of {LONGEST} words, few copies against none)",
        None, "direction", "flow", above(0.0), predictable_above,
    )  # fmt: skip


def _slows(name: str, says: str) -> Claim:
    def lost(results: Results) -> list[float]:
        found = results["optimiser"]
        changed = found.isel(member=np.flatnonzero(found[name].values > 0)).sortby("seed")
        plain = cell(results["frequency"], conduit=int(found.conduit[0]), occurrences=int(found.occurrences[0]))
        one, other = (_reading(some, "unseen", "decomposition").mean("epoch") for some in (plain, changed))
        return paired(one, other)

    return Claim(
        f"{name.replace('_', '-')}-slows",
        f"{says} slows the learning of rules (P(close) by the open symbol, averaged over training, is lower)",
        None, "direction", "optimiser", above(0.0), lost,
    )  # fmt: skip


def _meaning(part: str, rows: str, says: str) -> Claim:
    def correlations(results: Results) -> list[float]:
        found = results[f"meaning-{part}"]
        if rows == "most":
            found = cell(found, occurrences=int(found.occurrences.values.max()))
        return numbers(found.correlation)

    return Claim(
        f"decomposition-means-{part}",
        f"what decomposition says of a word is what exchanging it does to the close symbol's score (correlation > .5; {says})",
        None, "direction", "meaning", above(0.5), correlations,
    )  # fmt: skip


_LENGTHS = PRESETS["paper"].conduits_predicted
CLAIMS = (
    *(
        _when(which, conduit, arm, kind, "decomposition")
        for which in ("early", "late")
        for conduit in reversed(_LENGTHS)
        for arm in COPIES
        for kind in KINDS
    ),
    *(_when(which, LONGEST, arm, kind, "true") for which in ("early", "late") for arm in COPIES for kind in KINDS),
    _fault(
        "fault-inhibits",
        "with the reported fault of the public generator, predictable conduits inhibit in the long run, too (unseen conduits)",
        "none",
    ),
    _fault(
        "fault-inhibits-more",
        "the reported fault inhibits more than predictable conduits do that are written correctly as often (unseen conduits)",
        "many",
    ),
    *(
        make(name, what)
        for make in (_flow, _flow_arms)
        for name, what in (
            ("hidden", "the product of Jacobians of the hidden state has a larger norm"),
            ("state", "the product of Jacobians of hidden state and cell has a larger norm"),
            ("message", "a larger gradient comes back from the close symbol to the open symbol"),
        )
    ),
    _slows("momentum", "momentum (.9)"),
    _slows("weight_decay", "weight decay (1e-4)"),
    _meaning("frequency", "most", "models with the most rules of each length"),
    _meaning("predictability", "all", "all models of Figure 3"),
)
