"""Composition emerging (ours): group size and gate saturation at the checkpoints of one run, beside the accuracies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from partwise.methods.functional_group import group_in
from partwise.methods.gate_saturation import distance, gate_saturation
from partwise.studies._contract import Results
from partwise.studies._trained import label
from partwise.studies.attentive_guidance.parts.groups import MAIN, TARGETS, probe_sets
from partwise.studies.attentive_guidance.parts.inside import GATES, TEST_SPLITS
from partwise.studies.attentive_guidance.recipe import Recipe, compositions


def emergence(recipe: Recipe, out: Path) -> Results:
    """Dims (epoch, member): the size of each group, and each gate's mean distance from axes and diagonal.

    The quick preset follows the first target only.
    """
    targets = list(TARGETS)[: 1 if recipe.settings.preset == "quick" else None]
    trained = recipe.behaviour(out)
    rows = compositions(recipe.tasks[recipe.settings.seed], TEST_SPLITS)
    epochs = sorted({*(epoch for epoch in recipe.preset.keep_epochs if epoch < recipe.preset.epochs), recipe.preset.epochs})
    found = []
    for epoch in epochs:
        population = trained.population(f"epoch-{epoch:04d}")
        sets = probe_sets(recipe, population, targets)
        sizes = np.stack([group_in(data, MAIN, 0)["size"].values for data in sets.values()])
        saturation = distance(gate_saturation(population, rows, GATES)).mean("unit")
        here = xr.Dataset(
            {"size": (("target", "member"), sizes), "distance": (("gate", "member"), saturation.values)},
            {"target": targets, "gate": list(GATES), "member": list(population.names)},
        )
        found.append(label(here, population))
    return {"emergence": xr.concat(found, xr.Variable("epoch", epochs))}
