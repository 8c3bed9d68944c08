"""How many units carry a label: trained and untrained models, and under every rule (Baan et al. 2019, Tables 2 and 3)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from partwise.reports.figures._figure import COLOURS, Figure
from partwise.reports.figures.value_dots import value_dots


def functional_groups(found: xr.Dataset, untrained: xr.Dataset, published: Mapping[str, Mapping[str, float]]) -> Figure:
    """Group sizes of every model under the main rule, averaged over splits of the sentences."""
    cases = {}
    for target in found.target.values:
        trained = {arm: _sizes(found, target, arm) for arm in COLOURS}
        before = np.concatenate([_sizes(untrained, target, arm) for arm in COLOURS])
        cases[str(target)] = trained | {"untrained": before}
    table = found.mean("probe_seed").drop_vars("stability").to_dataframe().reset_index()
    return Figure(
        "functional-groups",
        "Functional groups",
        "The fewest units from which a linear probe, trained on them alone, reads the label at 95 % of the accuracy of all "
        "units. Diamonds are the paper's means. Untrained models are the same ones at epoch 0.",
        [value_dots(cases, "functional-groups", "", "units in the group (log scale)", published=published, log=True)],
        table,
    )


def group_rules(grid: xr.Dataset) -> Figure:
    """The same for the table in the encoder's state, under every choice that the paper leaves open."""
    one = grid.sel(target="encoder hidden, table")
    cases = {
        str(rule): {arm: one["size"].sel(rule=rule).values[grid.arm.values == arm] for arm in COLOURS}
        for rule in grid.rule.values
    }
    table = grid.to_dataframe().reset_index()
    return Figure(
        "group-rules",
        "Group size under every rule",
        "Ranking of units (sum or largest of the probe's absolute weights over labels), readout (probe trained again on the "
        "chosen units, or all other weights set to zero), and penalty (a mild one, or none with a stated number of steps).",
        [value_dots(cases, "group-rules", "", "units in the group (log scale)", log=True)],
        table,
    )


def _sizes(found: xr.Dataset, target: str, arm: str) -> np.ndarray:
    sizes = found["size"].sel(target=target).mean("probe_seed")
    return np.asarray(sizes.values[found.arm.values == arm], float)
