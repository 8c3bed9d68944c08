"""Component substitution (section 5.1, Table 4): a frozen part of one arm in a model of the other, the rest trained on.

Every component, direction and donor-host pair is a member; they train together, each with its own frozen part. A pair's
host is trained on its own split, with the guidance of its own arm, from the weights of its selected epoch.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

import xarray as xr

from partwise.interventions.transplant import transplant
from partwise.population import Member
from partwise.studies._contract import Results
from partwise.studies.attentive_guidance.recipe import ARMS, COMPONENTS, DIRECTIONS, Recipe
from partwise.training.config import MemberPlan

FINER = {
    **{f"{side} {part} {gate}": (f"{side}.{part}.{gate}_gate",)
       for side, part, gate in itertools.product(("encoder", "decoder"), ("input", "recurrent"), ("reset", "update"))},
    "attention": ("attention",),
    "focus": ("focus",),
}  # fmt: skip


def substitution(recipe: Recipe, out: Path) -> Results:
    chosen = {name: COMPONENTS[name] for name in recipe.preset.components}
    return {"substitution": _retrained(recipe, out, "substitution", chosen)}


def finer(recipe: Recipe, out: Path) -> Results:
    """Single gates, attention and focus."""
    return {"substitution-finer": _retrained(recipe, out, "finer", FINER)}


def pairs(seeds: tuple[int, ...], count: int) -> list[tuple[int, int]]:
    """The first `count` (donor, host) pairs: each seed with itself, then each with the next, and so on round."""
    n = len(seeds)
    return [(seeds[(place + shift) % n], seeds[place]) for shift in range(n) for place in range(n)][:count]


def _retrained(recipe: Recipe, out: Path, name: str, components: Mapping[str, tuple[str, ...]]) -> xr.Dataset:
    population = recipe.behaviour(out).population()
    plans: list[MemberPlan] = []
    hosts, donors = [], []
    who = itertools.product(recipe.preset.directions, components, pairs(recipe.settings.all_seeds, recipe.preset.pairs))
    for arm, component, (donor, host) in who:
        labels: dict[str, str | int | float] = {
            "arm": arm,
            "split_seed": host,
            "component": component,
            "donor": donor,
            "host": host,
        }
        member = Member(f"{arm}-{host}-with-{component}-of-{donor}".replace(" ", "-"), 1000 * (donor + 1) + host, labels)
        plans.append(MemberPlan(member=member, guidance=ARMS[arm], frozen=components[component]))
        hosts.append(f"{arm}-{host}")
        donors.append(f"{DIRECTIONS[arm]}-{donor}")
    parts = [plan.frozen for plan in plans]
    start = transplant(population.select(hosts), population.select(donors), parts).to("cpu")
    return recipe.retrain(name, out, start, plans, epochs=recipe.preset.retrained).final()
