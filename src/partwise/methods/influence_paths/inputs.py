"""Where influence is averaged: points on a line from a baseline to the source word, or any set of inputs.

Influence is a mean of gradients over inputs, times a direction. On a line (Integrated Gradients; Definition 3 of Lu et al.
2020, where the baseline is the midpoint of a noun's singular and plural) the direction is the line itself, and the
influences sum to the change of the quantity from the baseline to the word, up to the quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from partwise.errors import InputError, unknown
from partwise.twins.readable import Readable

RULES = ("midpoint", "gauss-legendre")


@dataclass(frozen=True)
class Inputs:
    """What stands in the source's place: some vectors a sentence, their weights, and the direction of change."""

    values: Float[Tensor, "sentence point width"]
    weights: Float[Tensor, " point"]
    direction: Float[Tensor, "sentence width"]
    baseline: Float[Tensor, "sentence width"] | None = None

    def rows(self, chosen: Tensor) -> Inputs:
        baseline = None if self.baseline is None else self.baseline[chosen]
        return Inputs(self.values[chosen], self.weights, self.direction[chosen], baseline)

    def some_points(self, start: int, stop: int) -> Inputs:
        return Inputs(self.values[:, start:stop], self.weights[start:stop], self.direction, self.baseline)


def on_a_line(
    word: Float[Tensor, "sentence width"], baseline: Float[Tensor, "sentence width"], points: int, rule: str
) -> Inputs:
    """Points and weights of a quadrature rule over the line from `baseline` to `word`."""
    if rule not in RULES:
        raise unknown("rule", rule, RULES)
    if points < 1:
        raise InputError(f"points is {points}; it must be 1 or more")
    if rule == "midpoint":
        places, weights = (np.arange(points) + 0.5) / points, np.full(points, 1 / points)
    else:
        nodes, weights = np.polynomial.legendre.leggauss(points)
        places, weights = (nodes + 1) / 2, weights / 2
    at = torch.from_numpy(places).to(word).view(1, -1, 1)
    direction = word - baseline
    return Inputs(baseline.unsqueeze(1) + at * direction.unsqueeze(1), torch.from_numpy(weights).to(word), direction, baseline)


def baseline_of(model: Readable, baseline: Any, sentences: int) -> Float[Tensor, "sentence width"]:
    """What the caller gave, as one vector a sentence; by default the mean of all word vectors."""
    if baseline is None:
        table = model.parameters.get("embedding.weight")
        if table is None:
            raise InputError("baseline is missing; a model wrapped without embedding= has no mean word vector to start from")
        return table.mean(dim=0).expand(sentences, -1)
    given = torch.as_tensor(baseline, device=model.device).to(model.dtype)
    if given.shape not in ((model.width,), (sentences, model.width)):
        raise InputError(
            f"baseline has shape {tuple(given.shape)}; give one vector a sentence, ({sentences}, {model.width}), or one for all"
        )
    if not torch.isfinite(given).all():
        raise InputError("baseline has values that are not finite")
    return given.expand(sentences, -1)


def any_inputs(model: Readable, given: Any, word: Float[Tensor, "sentence width"]) -> Inputs:
    """(values, direction) or (values, direction, weights): values (sentence, point, width), or a sampler that makes them."""
    values, direction, *rest = given
    if callable(values):
        values = values(word)
    values = torch.as_tensor(values, device=model.device).to(model.dtype)
    direction = torch.as_tensor(direction, device=model.device).to(model.dtype)
    if values.dim() != 3 or values.shape[0] != len(word) or values.shape[2] != model.width:
        raise InputError(f"inputs has values of shape {tuple(values.shape)}; give ({len(word)}, points, {model.width})")
    if direction.shape != word.shape:
        raise InputError(f"inputs has a direction of shape {tuple(direction.shape)}; give {tuple(word.shape)}")
    points = values.shape[1]
    weights = torch.as_tensor(rest[0] if rest else np.full(points, 1 / points), device=model.device).to(model.dtype)
    if weights.shape != (points,):
        raise InputError(f"inputs has weights of shape {tuple(weights.shape)}; give ({points},)")
    return Inputs(values, weights, direction)
