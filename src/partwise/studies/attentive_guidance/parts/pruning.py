"""Neuron pruning (section 5.2): guided models with the strongest 5 % of their units, before and after training on.

Controls: as many units drawn at random; and models of that width trained from scratch, which answer the paper's closing
question (why can small models not learn what 26 units can do?).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from partwise.interventions.prune import Pruned, at_random, prune, strongest
from partwise.population import Member, Population
from partwise.studies._contract import Results
from partwise.studies._trained import Trained
from partwise.studies.attentive_guidance.recipe import ARMS, PUBLISHED, Recipe
from partwise.training.config import MemberPlan

SHARE = 0.05
SIDES = ("encoder", "decoder")


def pruning(recipe: Recipe, out: Path) -> Results:
    """Accuracy before (epoch 0) and after training on, of the strongest and of random units; and of small models."""
    population = recipe.behaviour(out).population()
    guided = population.select([f"guided-{seed}" for seed in recipe.settings.all_seeds])
    kinds = {
        "strongest": prune(guided, {side: strongest(guided, side, SHARE) for side in SIDES}),
        "random": prune(guided, {side: at_random(guided, side, SHARE, recipe.settings.seed) for side in SIDES}),
    }
    plans = [_plan(kind, member, 1000) for kind in kinds for member in guided.members]
    start = Population.concatenate([_renamed(pruned, kind) for kind, pruned in kinds.items()]).to("cpu")
    held = np.concatenate([pruned.held for pruned in kinds.values()])
    retrained = recipe.retrain("pruning", out, start, plans, epochs=recipe.preset.pruned_retrained, held=held)
    width = round(SHARE * recipe.preset.hidden)
    small_plans = [_plan("small", member, 0) for member in guided.members]
    small = recipe.train("small", out, PUBLISHED, small_plans, hidden=width, keep_weights=False)
    return {"pruning": _before_and_after(retrained), "small": _before_and_after(small).assign_attrs(width=width)}


def _plan(kind: str, member: Member, shift: int) -> MemberPlan:
    labels: dict[str, str | int | float] = {
        "arm": "guided",
        "split_seed": int(member.labels["split_seed"]),
        "kind": kind,
        "of": member.seed,
    }
    return MemberPlan(member=Member(f"{kind}-{member.seed}", member.seed + shift, labels), guidance=ARMS["guided"])


def _renamed(pruned: Pruned, kind: str) -> Population:
    old = pruned.population
    members = [Member(f"{kind}-{member.seed}", member.seed, member.labels) for member in old.members]
    return Population(old.architecture, members, old.store, old.words)


def _before_and_after(trained: Trained) -> xr.Dataset:
    before = trained.history().accuracy.sel(epoch=0, drop=True)
    after = trained.final()
    return after.assign(before=before.sel(member=after.member.values))
