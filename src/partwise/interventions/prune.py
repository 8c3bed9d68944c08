"""Keep some hidden units and remove the rest, everywhere they are used (Baan et al. 2019, section 5.2).

A removed unit has no weight to it or from it, so its gates stand at one half, its candidate at zero, and nothing reads
it. `held` marks those zeros: a run that holds them trains only the units that were kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool

from partwise.errors import InputError
from partwise.methods.unit_strength import axes_of, unit_strength, units_of
from partwise.population import Population
from partwise.randomness import generator

Units = Bool[np.ndarray, "member unit"]


@dataclass(frozen=True)
class Pruned:
    """The smaller models, the mask of the numbers that were removed, and which units of each side were kept."""

    population: Population
    held: Bool[np.ndarray, "member parameter"]
    kept: Mapping[str, Units]


def prune(population: Population, keep: Mapping[str, Units]) -> Pruned:
    """Remove every unit that `keep` does not mark: by side, a mask with dims (member, unit)."""
    for side, units in keep.items():
        found, known = units.shape, (len(population), units_of(population, side))
        if found != known:
            raise InputError(
                f"keep marks {found[0]} x {found[1]} units of the {side}; this population has {known[0]} x {known[1]}"
            )
        if not units.any(axis=1).all():
            raise InputError(f"no unit of the {side} would be left; keep at least one in every member")
    pruned = population.to()
    held = torch.zeros_like(pruned.store, dtype=torch.bool)
    views = pruned.layout.views(held)
    for side, units in keep.items():
        gone = torch.from_numpy(~units).to(held.device)
        for axis in axes_of(population, side):
            view = views[axis.parameter].movedim(axis.axis + 1, -1)
            for block in range(axis.blocks):
                start = axis.start + block * units.shape[1]
                place = view[..., start : start + units.shape[1]]
                place |= gone.view(len(gone), *[1] * (place.dim() - 2), -1)
    pruned.store.masked_fill_(held, 0.0)
    return Pruned(pruned, held.cpu().numpy(), dict(keep))


def strongest(population: Population, side: str, share: float) -> Units:
    """The strongest `share` of each member's units, rounded to the nearest whole number."""
    strength = unit_strength(population, side)
    count = _count(strength, share)
    least = np.partition(strength.values, -count, axis=1)[:, -count]
    return strength.values >= least[:, None]


def at_random(population: Population, side: str, share: float, seed: int) -> Units:
    """As many units, drawn at random for each member: the control for `strongest`."""
    strength = unit_strength(population, side)
    count = _count(strength, share)
    chosen = np.zeros(strength.shape, bool)
    for row, member in enumerate(population.members):
        chosen[row, generator(seed, "random units", side, member.seed).permutation(strength.shape[1])[:count]] = True
    return chosen


def _count(strength: xr.DataArray, share: float) -> int:
    units = strength.sizes["unit"]
    count = round(share * units)
    if not 0 < share <= 1 or count < 1:
        raise InputError(f"share is {share}; of {units} units that keeps {count}; it must keep at least 1 and at most {units}")
    return count
