"""Multinomial logistic regression, many at once: the linear probes of every member, unit set and label shuffle in one batch.

Minimises, for each problem of the batch, mean cross entropy + penalty / 2 * |W|^2 over weights W and unpenalised biases:

1. The curvature is nowhere above H = X^T X / 2n + penalty (Boehning 1992), so W - H^-1 gradient never overshoots.
2. Nesterov's momentum on that step, started anew for a problem whose momentum points uphill.
3. A stated number of steps, not a tolerance: on separable data without a penalty there is no minimum to stop at.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

Features = Float[Tensor, "problem place unit"]
Weights = Float[Tensor, "problem label unit_and_bias"]

STEPS = 100
_JITTER = 1e-6  # of H's mean diagonal: keeps H invertible where units never move and there is no penalty


def fit(features: Features, label: Int[Tensor, "#problem place"], classes: int, penalty: float, steps: int = STEPS) -> Weights:
    """The weights of every problem; the last column holds the biases."""
    places, units = features.shape[1:]
    inputs = torch.cat((features, features.new_ones(len(features), places, 1)), dim=-1)
    wanted = torch.nn.functional.one_hot(label, classes).mT.to(inputs.dtype)
    cost = torch.full((units + 1,), penalty, device=inputs.device, dtype=inputs.dtype)
    cost[-1] = 0.0
    inverse = _inverse(inputs.double().mT @ inputs.double() / (2 * places) + torch.diag(cost)).to(inputs.dtype)
    weights = inputs.new_zeros(len(features), classes, units + 1)
    ahead, speed = weights, inputs.new_ones(len(features), 1, 1)
    for _ in range(steps):
        error = torch.softmax(ahead @ inputs.mT, dim=1) - wanted  # labels before places: a softmax runs along memory
        gradient = error @ inputs / places + cost * ahead
        new = ahead - gradient @ inverse
        uphill = (gradient * (new - weights)).sum(dim=(1, 2), keepdim=True) > 0
        speed = torch.where(uphill, 1.0, speed)
        faster = (1 + (1 + 4 * speed**2).sqrt()) / 2
        ahead = new + (speed - 1) / faster * (new - weights)
        weights, speed = new, faster
    return weights


def _inverse(curvature: Float[Tensor, "problem side side"]) -> Float[Tensor, "problem side side"]:
    """In double precision: activations of neighbouring units are nearly collinear."""
    diagonal = curvature.diagonal(dim1=-2, dim2=-1)
    diagonal += _JITTER * diagonal.mean(dim=-1, keepdim=True)
    return torch.cholesky_inverse(torch.linalg.cholesky(curvature))


def accuracy(weights: Weights, features: Features, label: Int[Tensor, "#problem place"]) -> Float[Tensor, " problem"]:
    """Share of places whose largest score is that of their label."""
    scores = weights[..., :-1] @ features.mT + weights[..., -1:]
    return (scores.argmax(dim=1) == label).to(features.dtype).mean(dim=-1)
