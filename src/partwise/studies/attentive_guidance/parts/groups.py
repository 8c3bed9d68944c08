"""Functional groups (section 4.1, Tables 2 and 3): under the main rule, under every other rule, and in untrained models."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from partwise.methods._probe_data import ProbeData, labelled
from partwise.methods._site_values import site_values
from partwise.methods.functional_group import GroupRule, group_in
from partwise.methods.unit_strength import unit_strength
from partwise.population import Population
from partwise.studies._contract import Results
from partwise.studies._trained import label
from partwise.studies.attentive_guidance.recipe import Recipe

TARGETS = {  # the rows of Tables 2 and 3
    "encoder hidden, table": ("encoder.hidden", "current_table"),
    "decoder update gate, table": ("decoder.update_gate", "current_table"),
    "decoder reset gate, table": ("decoder.reset_gate", "current_table"),
    "encoder hidden, time step": ("encoder.hidden", "time_step"),
}
MAIN = GroupRule()
RULES = {
    f"{ranking}, {readout}, {'penalty' if penalty else 'none'}": GroupRule(ranking=ranking, readout=readout, penalty=penalty)
    for ranking, readout, penalty in itertools.product(("sum", "max"), ("refit", "mask"), (MAIN.penalty, 0.0))
}
PROBE_SEEDS = {"quick": 1, "paper": 5}  # splits into training and test sentences, over which a group's size is averaged
STRONG = 0.05
KEPT = ("size", "full_accuracy", "group_accuracy")


def groups(recipe: Recipe, out: Path) -> Results:
    """The main rule on trained and on untrained models."""
    trained = recipe.behaviour(out)
    found = {}
    for name, weights in (("groups", "selected"), ("untrained-groups", "epoch-0000")):
        population = trained.population(weights)
        data = probe_sets(recipe, population)
        seeds = range(PROBE_SEEDS[recipe.settings.preset])
        sizes = [xr.concat([group_in(one, MAIN, seed) for seed in seeds], "probe_seed") for one in data.values()]
        whole = xr.concat(sizes, xr.Variable("target", list(data))).assign_coords(member=list(population.names))
        found[name] = label(_with_strength(whole, population), population)
    return found


def rules(recipe: Recipe, out: Path) -> Results:
    """Every choice that the paper leaves open."""
    population = recipe.behaviour(out).population()
    data = probe_sets(recipe, population)
    targets = xr.Variable("target", list(data))
    grid = [
        xr.concat([group_in(one, rule, 0)[list(KEPT)].drop_attrs() for one in data.values()], targets)
        for rule in RULES.values()
    ]
    whole = xr.concat(grid, xr.Variable("rule", list(RULES))).assign_coords(member=list(population.names))
    return {"group-rules": label(whole, population)}


def probe_sets(recipe: Recipe, population: Population, targets: Sequence[str] = tuple(TARGETS)) -> dict[str, ProbeData]:
    """Values and labels of some targets, on every composition of two tables; each site is recorded once."""
    chosen = {name: TARGETS[name] for name in targets}
    values = site_values(population, recipe.every_composition(), sorted({site for site, _ in chosen.values()}))
    return {name: labelled(values[site], probe, population.store.device) for name, (site, probe) in chosen.items()}


def _with_strength(found: xr.Dataset, population: Population) -> xr.Dataset:
    """The share of each group among the strongest 5 % of its side's units; and how alike groups are over probes."""
    sides = [TARGETS[str(target)][0].split(".")[0] for target in found.target.values]
    strength = np.stack([unit_strength(population, side).values for side in sides])
    count = max(1, round(STRONG * strength.shape[2]))
    strong = strength >= np.partition(strength, -count, axis=2)[:, :, -count, None]
    group = found.in_group.transpose("target", "probe_seed", "member", "unit").values
    share = (group & strong[:, None]).sum(axis=3) / np.maximum(group.sum(axis=3), 1)
    return (
        found.drop_vars("in_group")
        .drop_attrs()
        .assign(
            among_strongest=(("target", "probe_seed", "member"), share),
            stability=(("target", "member"), _stability(group)),
        )
    )


def _stability(group: np.ndarray) -> np.ndarray:
    """Mean overlap (intersection over union) of the groups found from different splits of the sentences."""
    pairs = list(itertools.combinations(range(group.shape[1]), 2))
    if not pairs:
        return np.full((group.shape[0], group.shape[2]), np.nan)
    shared = [
        (group[:, a] & group[:, b]).sum(axis=2) / np.maximum((group[:, a] | group[:, b]).sum(axis=2), 1) for a, b in pairs
    ]
    return np.mean(shared, axis=0)
