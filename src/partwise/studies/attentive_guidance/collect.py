"""From finished runs to the study's labelled results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from partwise.methods.attention_map import attention_map
from partwise.population import Population
from partwise.tasks._contract import Task
from partwise.training import checkpoint, run

SHOWN = ("heldout_compositions", "new_compositions")  # splits whose first rows get an attention map


@dataclass(frozen=True)
class Trained:
    """Several runs whose members belong together."""

    folders: Sequence[Path]

    def population(self, weights: str = "selected") -> Population:
        return Population.concatenate([checkpoint.load(folder / "checkpoints" / weights) for folder in self.folders])

    def history(self) -> xr.Dataset:
        return self._joined(0)

    def final(self) -> xr.Dataset:
        return self._joined(1)

    def _joined(self, which: int) -> xr.Dataset:
        joined = xr.concat([run.results(folder)[which] for folder in self.folders], "member")
        members = [
            member for folder in self.folders for member in checkpoint.read_facts(folder / "checkpoints" / "last")["members"]
        ]
        labels = {
            "arm": [str(member["labels"]["arm"]) for member in members],
            "seed": [int(member["seed"]) for member in members],
            "split_seed": [int(member["labels"]["split_seed"]) for member in members],
        }
        joined = joined.assign_coords({name: ("member", values) for name, values in labels.items()})
        return joined.sortby(["arm", "seed", "split_seed"])


def behaviour(trained: Trained, tasks: Mapping[int, Task]) -> dict[str, xr.Dataset]:
    """Accuracies, learning curves, and the attention of one pair of models on the same sentences."""
    population = trained.population()
    first = population.members[0].labels["split_seed"]
    pair = population.select([member.name for member in population.members if member.labels["split_seed"] == first])
    task = tasks[int(first)]
    rows = [task.splits[split][0] for split in SHOWN]
    return {
        "behaviour": trained.final(),
        "history": trained.history(),
        "attention": attention_map(pair, rows).assign_coords(split=("sentence", list(SHOWN))),
    }


def labelled(dataset: xr.Dataset, labels: Mapping[str, Any]) -> xr.Dataset:
    """The same value of each label for every member; a boolean becomes yes or no, which netCDF can hold."""
    values = {name: ("yes" if value else "no") if isinstance(value, bool) else value for name, value in labels.items()}
    members = dataset.sizes["member"]
    return dataset.assign_coords({name: ("member", [value] * members) for name, value in values.items()})
