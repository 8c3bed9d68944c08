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
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from partwise.methods._sentences import Sentences, read_through
from partwise.methods.influence_paths.case import Case
from partwise.methods.influence_paths.inputs import Inputs
from partwise.methods.influence_paths.quantity import Quantity
from partwise.twins.readable import Readable

CONSERVATION = {torch.float64: 1e-12, torch.float32: 1e-5}
COMPLETENESS = 1e-2

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


def conservation_error(sums: PerSentence, absolute: PerSentence, total: PerSentence) -> float:
    return float(((sums - total).abs() / absolute.clamp_min(torch.finfo(sums.dtype).tiny)).max())


def completeness_error(total: PerSentence, change: PerSentence) -> float:
    size = torch.maximum(change.abs(), change.square().mean().sqrt())
    return float(((total - change).abs() / size.clamp_min(torch.finfo(total.dtype).tiny)).max())


def enough_points(points: int, error: float) -> int:
    """With a fifth to spare."""
    return max(points + 1, math.ceil(1.2 * points * math.sqrt(error / COMPLETENESS)))


def total_and_certificate(case: Case) -> tuple[PerSentence, Certificate]:
    """The source's influence by autograd, and how complete it is."""
    total = total_influence(case.model, case.read, case.source, case.inputs, case.quantity, case.rows)
    return total, complete_certificate(case, total, None)


def complete_certificate(case: Case, total: PerSentence, conservation: float | None) -> Certificate:
    """With the completeness of a total, where the inputs are a line."""
    if case.inputs.baseline is None:
        return Certificate(conservation, None, None)
    change = change_of_quantity(case.model, case.read, case.source, case.inputs, case.quantity, case.rows)
    error = completeness_error(total, change)
    return Certificate(conservation, error, enough_points(case.points, error) if error > COMPLETENESS else None)


def total_influence(
    model: Readable, read: Sentences, source: int, inputs: Inputs, quantity: Quantity, rows: Tensor
) -> PerSentence:
    """The influence of the source by autograd through the whole model: integrated gradients, on these points."""
    leaf = inputs.values.detach().clone().requires_grad_()
    with torch.enable_grad():
        hidden = _last_hidden(model, read, source, leaf)
        (gradient,) = torch.autograd.grad(quantity.value(hidden, rows).sum(), leaf)
    return torch.einsum("spw,sw,p->s", gradient, inputs.direction, inputs.weights)


@torch.no_grad()
def change_of_quantity(
    model: Readable, read: Sentences, source: int, inputs: Inputs, quantity: Quantity, rows: Tensor
) -> PerSentence:
    """q at the word less q at the baseline."""
    assert inputs.baseline is not None
    ends = torch.stack((inputs.baseline + inputs.direction, inputs.baseline), dim=1)
    values = quantity.value(_last_hidden(model, read, source, ends), rows)
    return values[:, 0] - values[:, 1]


def _last_hidden(
    model: Readable, read: Sentences, source: int, values: Float[Tensor, "sentence point width"]
) -> Float[Tensor, "sentence point hidden"]:
    """The last hidden state of whole sentences, with other vectors in the source's place."""
    sentences, points, _ = values.shape
    vectors = read.vectors.unsqueeze(1).expand(-1, points, -1, -1)
    before, after = vectors[:, :, :source], vectors[:, :, source + 1 :]
    x = torch.cat((before, values.unsqueeze(2), after), dim=2).flatten(0, 1)
    start = [tuple(part.expand(sentences, -1).repeat_interleave(points, dim=0) for part in layer) for layer in read.start]
    hidden, _ = read_through(model, x, start)
    return hidden[:, -1].view(sentences, points, -1)
