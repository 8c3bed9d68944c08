"""Do they compose? Tables 5 and 6, what seed and split each contribute, what the recipe decides, and the LSTM of footnote 1."""

from __future__ import annotations

import itertools
from pathlib import Path

import xarray as xr

from partwise.methods.attention_map import attention_map
from partwise.studies._contract import Results
from partwise.studies.attentive_guidance.recipe import ARMS, PUBLISHED, Cell, Recipe
from partwise.training.config import MemberPlan

SHOWN = ("heldout_compositions", "new_compositions")  # splits whose first rows get an attention map
GRID = tuple(Cell(*way) for way in itertools.product((True, False), ("uniform", "pytorch"), (0.0, 1.0)))


def behaviour(recipe: Recipe, out: Path) -> Results:
    """Accuracies, learning curves, and the attention of one pair of models on the same sentences."""
    trained = recipe.behaviour(out)
    population = trained.population()
    first = recipe.settings.seed
    pair = population.select([f"{arm}-{first}" for arm in ARMS])
    rows = [recipe.tasks[first].splits[split][0] for split in SHOWN]
    return {
        "behaviour": trained.final(),
        "history": trained.history(),
        "attention": attention_map(pair, rows).assign_coords(split=("sentence", list(SHOWN))),
    }


def spread(recipe: Recipe, out: Path) -> Results:
    """From the first seed and split: every other seed on that split, and every other split under that seed."""
    final = recipe.behaviour(out).final()
    centre = final.sel(member=final.seed == recipe.settings.seed)
    star = recipe.train("spread", out, PUBLISHED, _star(recipe)).final()
    return {"spread": xr.concat([centre, star], "member")}


def _star(recipe: Recipe) -> list[MemberPlan]:
    first, *others = recipe.settings.all_seeds
    splits = {task.fingerprint(): seed for seed, task in reversed(recipe.tasks.items())}  # published samples come round again
    pairs = [*((seed, first) for seed in others), *((first, split) for split in sorted(splits.values()) if split != first)]
    return [recipe.plan(arm, seed, split) for seed, split in pairs for arm in ARMS]


def sensitivity(recipe: Recipe, out: Path) -> Results:
    """Both arms in every cell of the grid; the published cell is the behavioural part, which is not trained twice."""
    finals = [recipe.behaviour(out).final()]
    for full_focus in (True, False):  # one architecture, one population
        cells = [cell for cell in GRID if cell.full_focus == full_focus and cell != PUBLISHED]
        plans = [plan for cell in cells for plan in recipe.both_arms(cell)]
        name = f"sensitivity-{'focus' if full_focus else 'no-focus'}"
        finals.append(recipe.train(name, out, cells[0], plans, keep_weights=False).final())
    return {"sensitivity": xr.concat(finals, "member")}


def lstm(recipe: Recipe, out: Path) -> Results:
    """The same two arms with an LSTM in place of the GRU."""
    cell = Cell(cell="lstm")
    return {"lstm": recipe.train("lstm", out, cell, recipe.both_arms(cell), keep_weights=False).final()}
