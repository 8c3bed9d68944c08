"""Any parameter as a labelled map (Baan et al. 2019, section 3.1): outgoing units down, incoming units or words across.

A row of an embedding carries its word, since the vocabulary is saved with every checkpoint. `row_norms` turns the paper's
look at Figure 1 ("small weights" against "bigger weights in rows 2-10") into a number a row and member.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from partwise.errors import InputError, unknown
from partwise.population import Population


def weight_map(population: Population, parameter: str) -> xr.Dataset:
    """`weight` with dims (member, row, column). Rows of `encoder.embedding.weight` and the like are named by their words."""
    parameters = population.parameters
    if parameter not in parameters:
        raise unknown("parameter", parameter, parameters)
    values = parameters[parameter].detach().cpu().numpy()
    if values.ndim != 3:
        raise InputError(f"{parameter} is a vector a member; a map needs a matrix (the weight of the same part, say)")
    rows = _row_names(population, parameter, values.shape[1])
    return xr.Dataset(
        {"weight": (("member", "row", "column"), values.copy())},
        {"member": list(population.names), "row": rows},
        {"parameter": parameter},
    )


def row_norms(weights: xr.Dataset) -> xr.DataArray:
    """Euclidean norm of each row, dims (member, row)."""
    return np.sqrt((weights.weight**2).sum("column")).rename("norm")


def _row_names(population: Population, parameter: str, rows: int) -> list[str]:
    side = {"encoder.embedding.weight": "source", "decoder.embedding.weight": "target", "decoder.output.weight": "target"}
    words = population.words.get(side.get(parameter, ""), ())
    return list(words) if len(words) == rows else [str(row) for row in range(rows)]
