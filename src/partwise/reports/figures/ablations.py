"""What happens when parts are exchanged or units removed (Baan et al. 2019, section 5)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from partwise.reports.figures._figure import Figure
from partwise.reports.figures.value_dots import value_dots

NEW = "new_compositions"
_BY_HOST = {"guided": "guided", "baseline": "baseline"}


def substitution(found: xr.Dataset, before: xr.Dataset, published: Mapping[str, float]) -> Figure:
    """Accuracy on new compositions after training on with a frozen part of the other arm; one dot a donor-host pair."""
    accuracy = found.accuracy.sel(weights="selected", split=NEW)
    whole = before.accuracy.sel(weights="selected", split=NEW)
    arms = [arm for arm in _BY_HOST if (found.arm.values == arm).any()]
    cases = {"(nothing exchanged)": {arm: whole.values[before.arm.values == arm] for arm in arms}}
    for component in dict.fromkeys(str(name) for name in found.component.values):
        chosen = found.component.values == component
        cases[component] = {arm: accuracy.values[chosen & (found.arm.values == arm)] for arm in arms}
    theirs = {component: {"guided": value} for component, value in published.items()}
    table = accuracy.to_dataframe().reset_index()
    return Figure(
        "substitution",
        "Parts of the other arm",
        "A part of a model of the other arm is frozen into a host, which is then trained on with or without guidance, as it "
        "was before. Colour is the host's arm; each dot is one donor-host pair; diamonds are the paper's means.",
        [value_dots(cases, "substitution", "", "sequence accuracy on new compositions", published=theirs, span=(-0.04, 1.04))],
        table[["arm", "component", "donor", "host", "accuracy"]],
    )


def pruning(pruned: xr.Dataset, small: xr.Dataset, before: xr.Dataset) -> Figure:
    """Accuracy on new compositions of guided models cut to a few units, before and after training on."""
    full = before.accuracy.sel(weights="selected", split=NEW).values[before.arm.values == "guided"]
    cases: dict[str, dict[str, np.ndarray]] = {"full model": {"after": full}}
    for kind in ("strongest", "random"):
        chosen = pruned.sel(split=NEW).isel(member=np.flatnonzero(pruned.kind.values == kind))
        cases[f"{kind} 5 %"] = {"before": chosen.before.values, "after": chosen.accuracy.sel(weights="selected").values}
    width = int(small.attrs["width"])
    cases[f"{width} units from scratch"] = {"after": small.accuracy.sel(weights="selected", split=NEW).values}
    theirs = {"strongest 5 %": {"before": 0.124, "after": 0.925}, "full model": {"after": 0.823}}
    table = xr.concat([pruned.sel(split=NEW), small.sel(split=NEW)], "member").to_dataframe().reset_index()
    return Figure(
        "pruning",
        "A few units are enough, or are they?",
        "Guided models with only their strongest units, or as many random ones, before and after training on; and models of "
        "that width trained from scratch. Diamonds are the paper's means.",
        [value_dots(cases, "pruning", "", "sequence accuracy on new compositions", published=theirs, span=(-0.04, 1.04))],
        table[["kind", "of", "weights", "before", "accuracy"]],
    )
