"""The second moment of all that may still come: how strong the rest of a path can be, without looking at any rest.

For a state, let S be the sum over all paths from there to the quantity of a a^T, where a is a path's adjoint. S follows
backwards through the graph without naming a path: S = sum over hops M^T S' M. For a tangent t that has arrived at the
state, t^T S t is the sum of the squares of the influences of all paths that begin as t did. So

    no path that begins like this has more influence than sqrt(t^T S t),

and the bound is close: the squares of all those paths together are exactly it. Over points, the influence is a weighted mean,
whose square is at most the weighted mean of the squares. What rounding can add to the quadratic form is allowed for.

Squares leave the range of float32 long before influences do, so every moment carries an exponent, and tangents are scaled
before they are squared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from partwise.errors import InputError
from partwise.methods.influence_paths.case import Case
from partwise.methods.influence_paths.graph import Hop, State
from partwise.methods.influence_paths.trace import Trace
from partwise.methods.influence_paths.walk import backwards

_ROUNDING = 10  # machine epsilons
_IN_RANGE = 32  # powers of two away from 1 that need no exponent of their own
_MOST_ROWS = 128  # adjoints kept one by one; more are cheaper as a matrix (measured at 650 units)

Exponent = Int[Tensor, " point"]


@dataclass(frozen=True)
class Moment:
    """A second moment at each point: few adjoints themselves, (point, adjoint, hidden), or the matrix, (point, hidden, hidden).

    What stands in `values` is to be multiplied by 2 to the `exponent`, so that the numbers there stay in the middle of
    their range.
    """

    values: Tensor
    exponent: Exponent
    is_matrix: bool

    @classmethod
    def scaled(cls, values: Tensor, exponent: Exponent, is_matrix: bool) -> Moment:
        largest = torch.linalg.vector_norm(values.flatten(1), float("inf"), dim=1)
        if not torch.isfinite(largest).all():
            raise InputError("the influences are too large for their type; pass dtype=torch.float64")
        _, shift = torch.frexp(torch.where(largest > 0, largest, 1.0))
        if (shift.abs() < _IN_RANGE).all():
            return cls(values, exponent, is_matrix)
        return cls(_times_power(values, -shift), exponent + shift, is_matrix)

    def form(self, tangents: Float[Tensor, "point path hidden"]) -> Float[Tensor, "point path"]:
        """t^T S t, without the exponent."""
        if self.is_matrix:
            return ((tangents @ self.values) * tangents).sum(dim=-1).clamp_min(0.0)
        return (tangents @ self.values.mT).square().sum(dim=-1)

    @property
    def power(self) -> Float[Tensor, " point"]:
        """What a form is to be multiplied by."""
        exponent = self.exponent if self.is_matrix else 2 * self.exponent
        return torch.ldexp(torch.ones(len(exponent), dtype=torch.float64, device=exponent.device), exponent)

    def matrix(self) -> Moment:
        return self if self.is_matrix else Moment.scaled(self.values.mT @ self.values, 2 * self.exponent, True)

    def norm(self) -> Float[Tensor, " point"]:
        """At least the largest eigenvalue, without the exponent."""
        return self.values.flatten(1).norm(dim=1) ** (1 if self.is_matrix else 2)


class Moments:
    """Carries second moments backwards, for one sentence (the rows of the trace are its points)."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def dense(self, carried: Moment, hops: Sequence[Hop], layer: int, step: int, side: str) -> list[Moment]:
        factors, weight = self.trace.factors(side, layer, step), self.trace.map(side, layer)
        found = []
        for hop in hops:
            factor, block = factors[hop.gate], weight[self.trace.block(hop)]
            if carried.is_matrix:
                values = _through(carried.values, factor, block)
            else:
                values = (carried.values * factor.unsqueeze(1)) @ block
            found.append(Moment(values, carried.exponent, carried.is_matrix))
        return found

    def inner(self, carried: Moment, layer: int, step: int) -> Moment:
        return self._unit_by_unit(carried, self.trace.steps[layer, step].inner)

    def carry(self, carried: Moment, layer: int, step: int) -> Moment:
        return self._unit_by_unit(carried, self.trace.steps[layer, step].carried)

    def join(self, parts: Sequence[Moment]) -> Moment:
        rows = sum(part.values.shape[1] for part in parts)
        few = min(_MOST_ROWS, parts[0].values.shape[2])
        if not any(part.is_matrix for part in parts) and rows <= few:
            exponent, values = _aligned(parts)
            return Moment.scaled(torch.cat(values, dim=1), exponent, False)
        exponent, values = _aligned([part.matrix() for part in parts])
        total = values[0]
        for more in values[1:]:
            total = total + more
        return Moment.scaled(total, exponent, True)

    def _unit_by_unit(self, carried: Moment, factor: Float[Tensor, "point hidden"]) -> Moment:
        values = carried.values * factor.unsqueeze(1)
        values = values * factor.unsqueeze(2) if carried.is_matrix else values
        return Moment(values, carried.exponent, carried.is_matrix)


def _aligned(parts: Sequence[Moment]) -> tuple[Exponent, list[Tensor]]:
    """The values of moments of one kind, under their largest exponent."""
    exponent = torch.stack([part.exponent for part in parts]).amax(dim=0)
    return exponent, [
        part.values if torch.equal(part.exponent, exponent) else _times_power(part.values, part.exponent - exponent)
        for part in parts
    ]


def _times_power(values: Float[Tensor, "point _ hidden"], power: Exponent) -> Float[Tensor, "point _ hidden"]:
    return values * torch.ldexp(values.new_ones(len(power)), power).view(-1, 1, 1)


def _through(
    moment: Float[Tensor, "point hidden hidden"], factor: Float[Tensor, "point hidden"], block: Float[Tensor, "hidden width"]
) -> Float[Tensor, "point width width"]:
    """M^T S M with M = diag(factor) block. On a CPU one point after the other keeps every core busy (half again as fast)."""
    if moment.is_cuda:
        scaled = factor.unsqueeze(2) * block
        return scaled.mT @ (moment @ scaled)
    found = moment.new_empty(len(moment), block.shape[1], block.shape[1])
    for at_point, one, out in zip(moment, factor, found, strict=True):
        scaled = one.unsqueeze(1) * block
        torch.mm(scaled.T, at_point @ scaled, out=out)
    return found


class Rest:
    """Bounds on what tangents at a state can still become; built for one sentence. Energies and bounds are float64."""

    def __init__(self, trace: Trace, gradient: Float[Tensor, "point hidden"]) -> None:
        weights, self._graph = trace.inputs.weights.double(), trace.graph
        if (weights < 0).any():
            raise InputError("inputs has negative weights, for which there is no bound; give weights of 0 or above")
        self._shares = weights * weights.sum()  # a weighted mean's square is at most the weighted mean of squares
        self.moments: dict[State, Moment] = {}
        zero = torch.zeros(len(gradient), dtype=torch.int64, device=gradient.device)
        start = Moment.scaled(gradient.unsqueeze(1), zero, False)
        for states, _ in backwards(trace.graph, start, Moments(trace)):
            self.moments |= states
        slack = _ROUNDING * torch.finfo(gradient.dtype).eps
        self._slack = {state: slack * moment.norm().double() for state, moment in self.moments.items()}

    def in_order(self) -> list[State]:
        """Every state, each before those that can follow it."""
        return [state for state in self._graph.nodes() if state in self.moments]

    def energy(self, state: State, tangents: Float[Tensor, "path point hidden"]) -> Float[Tensor, " path"]:
        """The sum of mean squares of all influences that begin with each of the tangents."""
        return self._of(state, tangents, 0.0)

    def bound(self, state: State, tangents: Float[Tensor, "path point hidden"]) -> Float[Tensor, " path"]:
        """No path that begins with a tangent has more influence than this, in size."""
        return self._of(state, tangents, 1.0).sqrt()

    def _of(self, state: State, tangents: Float[Tensor, "path point hidden"], slack: float) -> Float[Tensor, " path"]:
        moment = self.moments[state]
        largest = tangents.abs().amax(dim=(1, 2))
        if not torch.isfinite(largest).all():
            raise InputError("the influences are too large for their type; pass dtype=torch.float64")
        size = torch.where(largest > 0, largest, 1.0)
        unit = tangents / size.view(-1, 1, 1)
        forms = moment.form(unit.transpose(0, 1)).double()
        forms = forms + slack * self._slack[state].unsqueeze(1) * unit.square().sum(dim=-1).double().T
        return ((self._shares * moment.power) @ forms) * size.double().square()


def check_budget(case: Case, memory: int, vectors: int) -> int:
    """How many tangents the budget holds beside the moments of one sentence; at least `vectors`, or it is too small."""
    hidden, size, graph = case.model.hidden, case.model.dtype.itemsize, case.graph
    states = graph.layers * graph.steps * len(graph.kind.states)
    moments, a_vector = (states + 8) * case.points * hidden * hidden * size, case.points * hidden * size
    if memory < moments + vectors * a_vector:
        raise InputError(
            f"budget {memory:,} bytes is too small for one sentence of {graph.steps} steps at {case.points} points; the "
            f"smallest that would do is {moments + vectors * a_vector:,} (fewer points need less)"
        )
    return (memory - moments) // a_vector
