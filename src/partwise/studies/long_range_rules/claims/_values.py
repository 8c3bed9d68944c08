"""How claims read results: one number a trained model, in the order of seeds; none where a preset leaves the models out."""

from __future__ import annotations

import numpy as np
import xarray as xr

EARLY = 0.3  # "early" is the first three tenths of training, decided before the models were trained


def cell(found: xr.Dataset, **labels: str | int | float) -> xr.Dataset:
    """The members of one condition, sorted by seed."""
    chosen = np.ones(found.sizes["member"], bool)
    for name, value in labels.items():
        chosen &= found[name].values == value
    return found.isel(member=np.flatnonzero(chosen)).sortby("seed")


def shown(found: xr.Dataset) -> xr.Dataset:
    """At the epoch that Figure 1 shows."""
    return found.sel(epoch=found.attrs["shown_epoch"])


def early(values: xr.DataArray) -> xr.DataArray:
    """The mean over the first part of training, the untrained model left out."""
    epochs = values.epoch.values
    return values.isel(epoch=(epochs > 0) & (epochs <= EARLY * epochs.max())).mean("epoch")


def late(values: xr.DataArray) -> xr.DataArray:
    return values.isel(epoch=-1)


def numbers(values: xr.DataArray) -> list[float]:
    return [float(value) for value in values.values]


def paired(one: xr.DataArray, other: xr.DataArray) -> list[float]:
    """One minus the other, seed by seed; nothing where a preset leaves one of them out."""
    if not one.size or not other.size:
        return []
    assert one.seed.values.tolist() == other.seed.values.tolist()
    return [float(value) for value in one.values - other.values]
