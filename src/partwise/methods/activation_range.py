"""Over which range each unit of a site moves on a data set, and how specialised it is (Baan et al. 2019, Figure 3).

Whiskers are the full range, the box the quartiles. The specialisation score is the share of a unit's variance that lies
between the groups of some probe label (eta squared): 0 for a unit that ignores the label, 1 for one that it determines.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float

from partwise.errors import InputError, unknown
from partwise.methods._site_values import SiteValues, site_values
from partwise.population import Population
from partwise.tasks._contract import Example

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


def activation_range(population: Population, examples: Sequence[Example], site: str, probe: str | None = None) -> xr.Dataset:
    """`value` with dims (member, unit, level); with a probe also `specialisation` with dims (member, unit)."""
    found = site_values(population, examples, [site])[site]
    places = found.values[:, found.inside]
    levels = np.quantile(places, QUANTILES, axis=1)
    coords = {"member": list(population.names), "level": list(QUANTILES)}
    result = xr.Dataset({"value": (("level", "member", "unit"), levels)}, coords, {"site": site})
    if probe is None:
        return result.transpose("member", "unit", "level")
    scores = specialisation(found, probe)
    return (
        result.assign(specialisation=(("member", "unit"), scores))
        .assign_attrs(probe=probe)
        .transpose("member", "unit", "level")
    )


def specialisation(found: SiteValues, probe: str) -> Float[np.ndarray, "member unit"]:
    """Variance between the label's groups over all variance; a unit that never moves scores 0."""
    known = found.examples[0].probes
    if probe not in known:
        raise unknown("probe label", probe, known)
    labels = [label for row, inside in zip(found.labels(probe), found.inside, strict=True) for label in np.array(row)[inside]]
    asked = np.array([label is not None for label in labels])
    names = [str(label) for label in labels if label is not None]
    groups = sorted(set(names))
    if len(groups) < 2:
        raise InputError(f"probe label {probe!r} has {len(groups)} class on these examples; a comparison needs two")
    values = found.values[:, found.inside][:, asked].astype(np.float64)
    member = np.array([groups.index(name) for name in names])
    centre = values.mean(axis=1, keepdims=True)
    within = sum(
        ((values[:, member == g] - values[:, member == g].mean(1, keepdims=True)) ** 2).sum(1) for g in range(len(groups))
    )
    total = ((values - centre) ** 2).sum(axis=1)
    return np.where(total > 0, 1 - within / np.where(total > 0, total, 1), 0.0)
