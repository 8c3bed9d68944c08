"""Weights and activations of both arms: the paper's sections 3.1, 3.2 and 4.2, and its Figures 1 to 4."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from partwise.methods.activation_range import activation_range
from partwise.methods.connectivity import connectivity, gate_matrix, strong_edges
from partwise.methods.gate_saturation import gate_saturation
from partwise.methods.weight_map import row_norms, weight_map
from partwise.population import Population
from partwise.studies._contract import Results
from partwise.studies._trained import label
from partwise.studies.attentive_guidance.recipe import ARMS, Recipe, compositions

MATRICES = {  # Figure 2 draws the first and the third
    "encoder W_hz": ("encoder.recurrent", "update_gate"),
    "encoder W_hr": ("encoder.recurrent", "reset_gate"),
    "decoder W_iz": ("decoder.input", "update_gate"),
    "decoder W_ir": ("decoder.input", "reset_gate"),
}
DRAWN = ("encoder W_hz", "decoder W_iz")
STRONGEST = 0.01  # the paper's thresholds of .2 and .17 kept about one weight in a hundred
GATES = ("encoder.reset_gate", "encoder.update_gate", "decoder.reset_gate", "decoder.update_gate")
STATES = ("encoder.hidden", "decoder.hidden")
TEST_SPLITS = ("heldout_inputs", "heldout_compositions", "heldout_tables", "new_compositions")


def weights(recipe: Recipe, out: Path) -> Results:
    """Figures 1 and 2, and the numbers behind what the paper reads off them."""
    population = recipe.behaviour(out).population()
    embedding = weight_map(population, "decoder.embedding.weight")
    pair = [f"{arm}-{recipe.settings.seed}" for arm in ARMS]
    graphs = [_graph(population, *MATRICES[name]) for name in MATRICES]
    edges = [_edges(population.select(pair), *MATRICES[name]) for name in DRAWN]
    return {
        "embedding": label(row_norms(embedding).to_dataset(), population),
        "embedding-map": embedding.sel(member=pair),
        "connectivity": label(xr.concat(graphs, xr.Variable("matrix", list(MATRICES))), population),
        "edges": xr.concat(edges, xr.Variable("matrix", list(DRAWN))),
        "polarity": label(_polarity(population), population),
    }


def _graph(population: Population, part: str, gate: str) -> xr.Dataset:
    found = connectivity(gate_matrix(population, part, gate), list(population.names), share=STRONGEST)
    return found.drop_attrs()


def _edges(pair: Population, part: str, gate: str) -> xr.Dataset:
    """The strongest edges themselves, for a drawing: the same number for each member."""
    matrices = gate_matrix(pair, part, gate)
    kept = strong_edges(matrices, None, STRONGEST)
    fewest = int(kept.sum(axis=(1, 2)).min())
    tables = []
    for matrix, mask in zip(matrices, kept, strict=True):
        receiver, sender = np.nonzero(mask)
        order = np.argsort(-np.abs(matrix[receiver, sender]), kind="stable")[:fewest]
        tables.append((sender[order], receiver[order], matrix[receiver[order], sender[order]]))
    columns = {
        name: np.stack(values) for name, values in zip(("sender", "receiver", "weight"), zip(*tables, strict=True), strict=True)
    }
    return xr.Dataset({name: (("member", "edge"), values) for name, values in columns.items()}, {"member": list(pair.names)})


def _polarity(population: Population) -> xr.Dataset:
    """Over units: the correlation of their mean weights in the update gate and in the reset gate of one map."""
    found = {}
    for part, axis in (("encoder.recurrent", "receiver"), ("decoder.input", "sender")):
        means = [
            gate_matrix(population, part, gate).mean(axis=2 if axis == "receiver" else 1)
            for gate in ("update_gate", "reset_gate")
        ]
        found[part] = [float(np.corrcoef(update, reset)[0, 1]) for update, reset in zip(*means, strict=True)]
    return xr.Dataset(
        {"correlation": (("part", "member"), np.array(list(found.values())))},
        {"part": list(found), "member": list(population.names)},
    )


def activations(recipe: Recipe, out: Path) -> Results:
    """Figures 3 and 4 on the rows of every test split."""
    population = recipe.behaviour(out).population()
    rows = compositions(recipe.tasks[recipe.settings.seed], TEST_SPLITS)
    ranges = [activation_range(population, rows, site, "current_table").drop_attrs() for site in STATES]
    return {
        "ranges": label(xr.concat(ranges, xr.Variable("site", list(STATES))), population),
        "saturation": label(gate_saturation(population, rows, GATES), population),
    }
