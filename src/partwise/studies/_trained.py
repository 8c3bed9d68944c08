"""Several runs whose members belong together, read back as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from partwise.population import Member, Population
from partwise.training import checkpoint, run


@dataclass(frozen=True)
class Trained:
    """Populations come back on the study's device, results with the members' labels as coordinates; both are sorted by the
    labels of `order`, then by seed."""

    folders: Sequence[Path]
    device: str
    order: tuple[str, ...] = ("arm",)

    def population(self, weights: str = "selected") -> Population:
        """All members; `weights` names a checkpoint: selected, last, epoch-0010."""
        whole = Population.concatenate([checkpoint.load(folder / "checkpoints" / weights) for folder in self.folders])
        order = sorted(whole.members, key=self._place)
        return whole.select([member.name for member in order]).to(self.device)

    def epochs(self) -> list[int]:
        """The epochs whose weights stayed on disk."""
        names = [path.name for path in (self.folders[0] / "checkpoints").glob("epoch-*")]
        return sorted(int(name.removeprefix("epoch-")) for name in names)

    def history(self) -> xr.Dataset:
        return self._joined(0)

    def final(self) -> xr.Dataset:
        return self._joined(1)

    def _place(self, member: Member) -> tuple[tuple[str | int | float, ...], int, str]:
        return tuple(member.labels[name] for name in self.order), member.seed, member.name

    def _joined(self, which: int) -> xr.Dataset:
        joined = xr.concat([run.results(folder)[which] for folder in self.folders], "member")
        members = [member for folder in self.folders for member in run.members(folder)]
        labelled = joined.assign_coords(_labels(members))
        return labelled.isel(member=sorted(range(len(members)), key=lambda row: self._place(members[row])))


def label(found: xr.Dataset, population: Population) -> xr.Dataset:
    """Seed and labels of every member as coordinates of a result."""
    return found.assign_coords(_labels(population.members))


def _labels(members: Sequence[Member]) -> dict[str, tuple[str, list[str | int | float]]]:
    labels = {name: ("member", [member.labels[name] for member in members]) for name in members[0].labels}
    return {"seed": ("member", [member.seed for member in members]), **labels}
