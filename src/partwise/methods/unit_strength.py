"""How strong each hidden unit is: the Euclidean norm of all weights to it and from it, everywhere it is used.

Baan et al. (2019, sections 4.1 and 5.2) speak of units "with the strongest absolute weight values" without saying which
matrices or which norm. Here every matrix counts in which the unit has a row or a column (biases do not): its input and
recurrent rows for all gates, its recurrent column, and what attention, the other side or the output read from it.
"""

from __future__ import annotations

from collections.abc import Iterator

import xarray as xr
from jaxtyping import Float
from torch import Tensor

from partwise.errors import InputError, unknown
from partwise.models._contract import HasUnits, UnitAxis
from partwise.population import Population


def unit_strength(population: Population, side: str) -> xr.DataArray:
    """Strength of every unit of one side, dims (member, unit)."""
    axes = axes_of(population, side)
    total = sum(squares.sum(dim=1) for axis in axes for squares in _along(population, side, axis) if squares.shape[1] > 1)
    assert isinstance(total, Tensor)
    return xr.DataArray(
        total.sqrt().cpu().numpy(), dims=("member", "unit"), coords={"member": list(population.names)}, attrs={"side": side}
    )


def axes_of(population: Population, side: str) -> tuple[UnitAxis, ...]:
    """Every place where units of `side` are used."""
    if not isinstance(population.architecture, HasUnits):
        raise InputError(f"{type(population.architecture).__name__} does not say where its units are used")
    known = population.architecture.unit_axes()
    if side not in known:
        raise unknown("side", side, known)
    return known[side]


def units_of(population: Population, side: str) -> int:
    """How many units `side` has."""
    axes_of(population, side)
    assert isinstance(population.architecture, HasUnits)
    return population.architecture.units()[side]


def _along(population: Population, side: str, axis: UnitAxis) -> Iterator[Float[Tensor, "member other unit"]]:
    """Squared weights at each block of an axis, the other axes flattened; a bias has one other entry and is left out above."""
    units = units_of(population, side)
    values = population.parameters[axis.parameter].detach().movedim(axis.axis + 1, -1)
    flat = values.reshape(len(population), -1, values.shape[-1]).square()
    for block in range(axis.blocks):
        yield flat[..., axis.start + block * units : axis.start + (block + 1) * units]
