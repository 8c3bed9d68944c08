"""Ablate single hidden units, and see what the quantity makes of it.

`everywhere`: whoever reads the unit reads the value it is set to: its own layer at the next step, the layer above, the
head. `recurrent`: only its own layer at the next step and, from the top layer, the head, which is what the published code
of Lakretz et al. (2019) does (it clears columns of the recurrent map and of the decoder, so that a unit of the first layer
still feeds the second).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from partwise.errors import InputError, unknown
from partwise.layers.precision import exact_products
from partwise.methods._sentences import States, bytes_of, read_through
from partwise.methods.influence_paths.case import Case, cases

HOW, TO = ("everywhere", "recurrent"), ("zero", "mean")


def ablate(
    model: Any,
    ids: Any,
    contrast: Any,
    units: Sequence[tuple[int, int]],
    *,
    to: str = "zero",
    how: str = "everywhere",
    lengths: Any = None,
    init: Any = "zero",
    dtype: torch.dtype | None = None,
    budget: str | int = "1GB",
) -> xr.Dataset:
    """The quantity as it is (`original`, dims (sentence)) and without each of the `units` in turn (`ablated`, dims (unit,
    sentence)).

    A unit is (layer, number). `to` is zero, or the unit's mean over all sentences and steps. It is held from the first word on.
    """
    for name, value, allowed in (("how", how, HOW), ("value of to", to, TO)):
        if value not in allowed:
            raise unknown(name, value, allowed)
    with exact_products(), torch.no_grad():
        asked, members = cases(
            model,
            "ablate",
            ids,
            source=0,
            contrast=contrast,
            baseline=_no_line(model),
            points=1,
            lengths=lengths,
            init=init,
            dtype=dtype,
        )
        _check(asked[0], units)
        found = [_of_case(case, units, to, how, bytes_of(budget)) for case in asked]
    result = found[0] if members is None else xr.concat(found, xr.Variable("member", list(members)))
    return result.assign_attrs(to=to, how=how)


def _of_case(case: Case, units: Sequence[tuple[int, int]], to: str, how: str, memory: int) -> xr.Dataset:
    recorded: dict[str, list[Tensor]] = {}

    def record(site: str, time: int, value: Tensor) -> Tensor:
        if site.endswith(".hidden"):
            recorded.setdefault(site, []).append(value)
        return value

    hidden, _ = read_through(case.model, case.read.vectors, case.read.start, tap=record)
    original = case.quantity.value(hidden[:, -1:], case.rows)[:, 0]
    means = {site: torch.stack(values).mean(dim=(0, 1)) for site, values in recorded.items()}
    values = [0.0 if to == "zero" else float(means[f"layer{layer}.hidden"][unit]) for layer, unit in units]
    a_unit = len(case.rows) * case.model.hidden * case.model.dtype.itemsize * 8 * case.read.time
    at_once = max(1, memory // a_unit)
    found = []
    for start in range(0, len(units), at_once):
        some = slice(start, start + at_once)
        found.append(_without(case, units[some], values[some], how))
    arrays = {
        "original": ("sentence", original.cpu().numpy()),
        "ablated": (("unit", "sentence"), torch.cat(found).cpu().numpy()),
    }
    names = [f"layer{layer}.hidden[{unit}]" for layer, unit in units]
    return xr.Dataset(arrays, {"unit": names})


def _without(case: Case, units: Sequence[tuple[int, int]], values: Sequence[float], how: str) -> Tensor:
    """The quantity without each unit, (unit, sentence): the sentences once for every unit."""
    rows, device = len(case.rows), case.rows.device
    layers = torch.tensor([layer for layer, _ in units], device=device).repeat_interleave(rows)
    numbers = torch.tensor([unit for _, unit in units], device=device).repeat_interleave(rows)
    held = torch.tensor(values, device=device, dtype=case.model.dtype).repeat_interleave(rows)
    units_axis = torch.arange(case.model.hidden, device=device)

    def hold(layer: int, hidden: Tensor) -> Tensor:
        mask = (layers == layer).unsqueeze(1) & (numbers.unsqueeze(1) == units_axis)
        return torch.where(mask, held.unsqueeze(1), hidden)

    def tap(site: str, time: int, value: Tensor) -> Tensor:
        layer, _, name = site.partition(".")
        return hold(int(layer.removeprefix("layer")), value) if name == "hidden" and how == "everywhere" else value

    def between(layer: int, state: States) -> States:
        return (hold(layer, state[0]), *state[1:])

    vectors = case.read.vectors.repeat(len(units), 1, 1)
    start = [tuple(part.expand(rows, -1).repeat(len(units), 1) for part in layer) for layer in case.read.start]
    begun = [between(layer, state) for layer, state in enumerate(start)]
    hidden, _ = read_through(case.model, vectors, begun, between=between, tap=tap)
    last = hold(case.model.layers - 1, hidden[:, -1])
    every = case.rows.repeat(len(units))
    return case.quantity.value(last.unsqueeze(1), every).view(len(units), rows)


def _check(case: Case, units: Sequence[tuple[int, int]]) -> None:
    if not len(units):
        raise InputError("units is empty; give at least one (layer, number)")
    for layer, unit in units:
        if not (0 <= layer < case.model.layers and 0 <= unit < case.model.hidden):
            raise InputError(
                f"units holds ({layer}, {unit}); layers are 0 to {case.model.layers - 1}, units 0 to {case.model.hidden - 1}"
            )


def _no_line(model: Any) -> Any:
    """A baseline that is never used, for models without word vectors."""
    width = getattr(model, "width", None)
    return None if width is None else np.zeros(width)
