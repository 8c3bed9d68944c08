"""How claims read results: one number a trained model, in the order of seeds."""

from __future__ import annotations

import numpy as np
import xarray as xr


def of_arm(values: xr.DataArray, arm: str) -> np.ndarray:
    """One number a model of an arm; other dimensions are averaged over."""
    chosen = values.isel(member=np.flatnonzero(values.arm.values == arm)).sortby("seed")
    rest = [dim for dim in chosen.dims if dim != "member"]
    return np.asarray(chosen.mean(rest).values, float)


def guided_less_baseline(values: xr.DataArray) -> list[float]:
    """Paired by seed."""
    return list(of_arm(values, "guided") - of_arm(values, "baseline"))
