"""Two certificates with two tolerances.

Conservation: the influences of all paths sum to the influence of the source, which is computed a second time by autograd
through the model's open equations, on the same points. Relative to the sum of the paths' absolute influences.

Completeness: on a line, that total is the change of the quantity from the baseline to the word, up to the quadrature.
Relative to the size of that change (root mean square over sentences, where a sentence's own is smaller). Above the
tolerance, the message says with how many points it would be met: the midpoint rule's error falls with the square of their
number.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from partwise.methods._sentences import read_through
from partwise.methods.influence_paths.case import Case

CONSERVATION = {torch.float64: 1e-12, torch.float32: 1e-5}
COMPLETENESS = 1e-2
_MOST_POINTS = 10_000
_KEPT_A_STEP = 20  # values of a unit that a step keeps for the way back

PerSentence = Float[Tensor, " sentence"]


@dataclass(frozen=True)
class Certificate:
    """The largest relative errors. `completeness` is None where the inputs are no line; where it is too large, `points`
    would do."""

    conservation: float | None
    completeness: float | None
    points: int | None

    def warn(self, dtype: torch.dtype) -> None:
        said = []
        if self.conservation is not None and not self.conservation <= CONSERVATION[dtype]:
            said.append(
                f"conservation is {self.conservation:.1e}, above {CONSERVATION[dtype]:.0e}: the paths do not sum to the "
                "influence of the source; try dtype=torch.float64"
            )
        if self.completeness is not None and not self.completeness <= COMPLETENESS:
            said.append(
                f"completeness is {self.completeness:.1e}, above {COMPLETENESS:.0e}: the influences do not sum to the "
                f"change of the quantity; points={self.points} would do better"
            )
        if said:
            warnings.warn("; ".join(said), stacklevel=4)


def worst(certificates: Sequence[Certificate]) -> Certificate:
    """Of several members; a number that is none is the worst of all."""

    def largest(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.max(known)) if known else None

    points = [one.points for one in certificates if one.points is not None]
    return Certificate(
        largest([one.conservation for one in certificates]),
        largest([one.completeness for one in certificates]),
        max(points, default=None),
    )


def conservation_error(sums: PerSentence, scale: PerSentence, total: PerSentence) -> float:
    return float(((sums - total).abs() / scale.clamp_min(torch.finfo(sums.dtype).tiny)).max())


def completeness_error(total: PerSentence, change: PerSentence, ends: PerSentence) -> float:
    """`ends`: the size of the quantity itself; a change that is rounding beside it is no change to be complete about."""
    size = torch.maximum(change.abs(), change.square().mean().sqrt())
    rounding = 10 * torch.finfo(total.dtype).eps * ends
    return float(((total - change).abs() / torch.maximum(size, rounding).clamp_min(torch.finfo(total.dtype).tiny)).max())


def enough_points(points: int, error: float) -> int | None:
    """With a fifth to spare; None where no reasonable number would do."""
    wanted = 1.2 * points * math.sqrt(error / COMPLETENESS)
    return max(points + 1, math.ceil(wanted)) if wanted < _MOST_POINTS else None


def total_and_certificate(case: Case, memory: int) -> tuple[PerSentence, Certificate]:
    """The source's influence by autograd, and how complete it is."""
    total, _ = total_influence(case, memory)
    return total, complete_certificate(case, total, None)


def complete_certificate(case: Case, total: PerSentence, conservation: float | None) -> Certificate:
    """With the completeness of a total, where the inputs are a line."""
    if case.inputs.baseline is None:
        return Certificate(conservation, None, None)
    ends = ends_of_line(case)
    error = completeness_error(total, ends[:, 0] - ends[:, 1], ends.abs().amax(dim=1))
    return Certificate(conservation, error, enough_points(case.points, error) if error > COMPLETENESS else None)


def total_influence(case: Case, memory: int) -> tuple[PerSentence, PerSentence]:
    """The influence of the source by autograd through the whole model: integrated gradients, on these points. And what it
    would be if every gradient pointed along the direction: the scale that its rounding belongs to."""
    total, scale = torch.zeros(2, len(case.rows), dtype=case.model.dtype, device=case.rows.device)
    for part in case.chunks(_KEPT_A_STEP * case.graph.steps * case.graph.layers, memory):
        leaf = part.inputs.values.detach().clone().requires_grad_()
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(part.quantity.value(_last_hidden(part, leaf), part.rows).sum(), leaf)
        inputs = part.inputs
        total[part.rows] += torch.einsum("spw,sw,p->s", gradient, inputs.direction, inputs.weights)
        scale[part.rows] += (gradient.norm(dim=-1) @ inputs.weights.abs()) * inputs.direction.norm(dim=-1)
    return total, scale


@torch.no_grad()
def ends_of_line(case: Case) -> Float[Tensor, "sentence 2"]:
    """The quantity at the word, and at the baseline."""
    inputs = case.inputs
    assert inputs.baseline is not None
    return case.quantity.value(
        _last_hidden(case, torch.stack((inputs.baseline + inputs.direction, inputs.baseline), dim=1)), case.rows
    )


def _last_hidden(case: Case, values: Float[Tensor, "sentence point width"]) -> Float[Tensor, "sentence point hidden"]:
    """The last hidden state, with other vectors in the source's place; the words before it are read once, without a graph."""
    read, (sentences, points, _) = case.read, values.shape
    state = read.start
    if case.source:
        with torch.no_grad():
            _, state = read_through(case.model, read.vectors[:, : case.source], state)
    after = read.vectors[:, case.source + 1 :].unsqueeze(1).expand(-1, points, -1, -1)
    x = torch.cat((values.unsqueeze(2), after), dim=2).flatten(0, 1)
    start = [tuple(part.expand(sentences, -1).repeat_interleave(points, dim=0) for part in layer) for layer in state]
    hidden, _ = read_through(case.model, x, start)
    return hidden[:, -1].view(sentences, points, -1)
