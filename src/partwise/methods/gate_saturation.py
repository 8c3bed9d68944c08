"""How often each gate is all but closed or all but open (Karpathy et al. 2015; Baan et al. 2019, section 4.2).

A gate is left-saturated where its value is below .1 and right-saturated where it is above .9; a unit's two fractions are
taken over all steps of all sentences. A unit that is always saturated lies on the diagonal left + right = 1; one that
is never saturated lies at the origin. The distance from the diagonal, 1 - left - right, is the fraction in between.

Which side means "open" is a convention. PyTorch's update gate z is 1 where the OLD state is kept, and most papers write it the
other way round; `other_convention` gives the second reading, in which `left` and `right` of update gates change places.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from partwise.errors import InputError
from partwise.methods._site_values import site_values
from partwise.population import Population
from partwise.tasks._contract import Example

LEFT, RIGHT = 0.1, 0.9


def gate_saturation(
    population: Population, examples: Sequence[Example], gates: Sequence[str], left: float = LEFT, right: float = RIGHT
) -> xr.Dataset:
    """Fractions of steps, dims (gate, member, unit): `left`, `right`, and `between` (one minus both)."""
    if not 0 <= left < right <= 1:
        raise InputError(f"left is {left} and right is {right}; thresholds of a gate must satisfy 0 <= left < right <= 1")
    wrong = [gate for gate in gates if not gate.endswith("_gate")]
    if wrong:
        raise InputError(f"{wrong[0]} is no gate; its values are not bound to 0 to 1")
    found = site_values(population, examples, gates)
    inside = {gate: found[gate].values[:, found[gate].inside] for gate in gates}  # (member, place, unit)
    closed = np.stack([(inside[gate] < left).mean(axis=1) for gate in gates])
    opened = np.stack([(inside[gate] > right).mean(axis=1) for gate in gates])
    dims = ("gate", "member", "unit")
    return xr.Dataset(
        {"left": (dims, closed), "right": (dims, opened), "between": (dims, 1 - closed - opened)},
        {"gate": list(gates), "member": list(population.names)},
        {"thresholds": [left, right], "convention": "PyTorch: an update gate of 1 keeps the old state"},
    )


def other_convention(saturation: xr.Dataset) -> xr.Dataset:
    """The same fractions read in the convention of papers that write the update gate the other way round."""
    swap = saturation.gate.str.endswith("update_gate")
    return saturation.assign(
        left=saturation.left.where(~swap, saturation.right), right=saturation.right.where(~swap, saturation.left)
    ).assign_attrs(convention="papers: an update gate of 1 takes the new state")


def distance(saturation: xr.Dataset) -> xr.DataArray:
    """How far a unit lies from every pattern the paper reads off its Figure 4: 0 on either axis and on the diagonal.

    The smallest of left, right and between: a gate on the diagonal is always saturated, one on an axis is saturated to one
    side or not at all; what lies inside the triangle does a bit of everything.
    """
    return np.minimum(np.minimum(saturation.left, saturation.right), saturation.between).rename("distance")
