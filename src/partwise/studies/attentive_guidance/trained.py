"""Several runs whose members belong together, read back as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from partwise.population import Population
from partwise.training import checkpoint, run


@dataclass(frozen=True)
class Trained:
    """Populations come back on the study's device, results with the members' labels as coordinates."""

    folders: Sequence[Path]
    device: str

    def population(self, weights: str = "selected") -> Population:
        """All members, sorted by arm and seed; `weights` names a checkpoint: selected, last, epoch-0010."""
        whole = Population.concatenate([checkpoint.load(folder / "checkpoints" / weights) for folder in self.folders])
        order = sorted(whole.members, key=lambda member: (str(member.labels["arm"]), member.seed, member.name))
        return whole.select([member.name for member in order]).to(self.device)

    def history(self) -> xr.Dataset:
        return self._joined(0)

    def final(self) -> xr.Dataset:
        return self._joined(1)

    def _joined(self, which: int) -> xr.Dataset:
        joined = xr.concat([run.results(folder)[which] for folder in self.folders], "member")
        members = [member for folder in self.folders for member in run.members(folder)]
        labels = {name: ("member", [member.labels[name] for member in members]) for name in members[0].labels}
        joined = joined.assign_coords({"seed": ("member", [member.seed for member in members])} | labels)
        return joined.sortby(["arm", "seed", "split_seed"])


def label(found: xr.Dataset, population: Population) -> xr.Dataset:
    """Arm and seed of every member as coordinates of a result."""
    return found.assign_coords(
        arm=("member", [str(member.labels["arm"]) for member in population.members]),
        seed=("member", [member.seed for member in population.members]),
    )
