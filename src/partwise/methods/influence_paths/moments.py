"""The second moment of all that may still come: how strong the rest of a path can be, without looking at any rest.

For a state, let S be the sum over all paths from there to the quantity of a a^T, where a is a path's adjoint. S follows
backwards through the graph without naming a path: S = sum over hops M^T S' M. For a tangent t that has arrived at the
state, t^T S t is the sum of the squares of the influences of all paths that begin as t did. So

    no path that begins like this has more influence than sqrt(t^T S t),

and the bound is close: the squares of all those paths together are exactly it. Over points, the influence is a weighted
mean, whose square is at most the weighted mean of the squares. What rounding can add to the quadratic form is allowed for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from partwise.errors import InputError
from partwise.methods.influence_paths.case import Case
from partwise.methods.influence_paths.graph import Hop, State
from partwise.methods.influence_paths.trace import Trace
from partwise.methods.influence_paths.walk import backwards

_ROUNDING = 10  # machine epsilons
_MOST_ROWS = 128  # adjoints kept one by one; more are cheaper as a matrix (measured at 650 units)


@dataclass(frozen=True)
class Moment:
    """A second moment at each point: few adjoints themselves, (point, adjoint, hidden), or the matrix, (point, hidden,
    hidden)."""

    values: Tensor
    is_matrix: bool

    def form(self, tangents: Float[Tensor, "point path hidden"]) -> Float[Tensor, "point path"]:
        """t^T S t."""
        if self.is_matrix:
            return ((tangents @ self.values) * tangents).sum(dim=-1).clamp_min(0.0)
        return (tangents @ self.values.mT).square().sum(dim=-1)

    def matrix(self) -> Float[Tensor, "point hidden hidden"]:
        return self.values if self.is_matrix else self.values.mT @ self.values

    def norm(self) -> Float[Tensor, " point"]:
        """At least the largest eigenvalue."""
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
                found.append(Moment(_through(carried.values, factor, block), True))
            else:
                found.append(Moment((carried.values * factor.unsqueeze(1)) @ block, False))
        return found

    def inner(self, carried: Moment, layer: int, step: int) -> Moment:
        return self._scaled(carried, self.trace.steps[layer, step].inner)

    def carry(self, carried: Moment, layer: int, step: int) -> Moment:
        return self._scaled(carried, self.trace.steps[layer, step].carried)

    def join(self, parts: Sequence[Moment]) -> Moment:
        rows = [part.values for part in parts if not part.is_matrix]
        few = torch.cat(rows, dim=1) if rows else None
        if few is not None and len(rows) == len(parts) and few.shape[1] <= _MOST_ROWS:
            return Moment(few, False)
        total = few.mT @ few if few is not None else None
        for part in parts:
            if part.is_matrix:
                total = part.values.clone() if total is None else total.add_(part.values)
        assert total is not None
        return Moment(total, True)

    def _scaled(self, carried: Moment, factor: Float[Tensor, "point hidden"]) -> Moment:
        values = carried.values * factor.unsqueeze(1)
        return Moment(values * factor.unsqueeze(2) if carried.is_matrix else values, carried.is_matrix)


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
    """Bounds on what tangents at a state can still become; built for one sentence."""

    def __init__(self, trace: Trace, gradient: Float[Tensor, "point hidden"]) -> None:
        weights, self._graph = trace.inputs.weights, trace.graph
        if (weights < 0).any():
            raise InputError("inputs has negative weights, for which there is no bound; give weights of 0 or above")
        self._shares = weights * weights.sum()  # a weighted mean's square is at most the weighted mean of squares
        self.moments: dict[State, Moment] = {}
        for states, _ in backwards(trace.graph, Moment(gradient.unsqueeze(1), False), Moments(trace)):
            self.moments |= states
        slack = _ROUNDING * torch.finfo(gradient.dtype).eps
        self._slack = {state: slack * moment.norm() for state, moment in self.moments.items()}

    def in_order(self) -> list[State]:
        """Every state, each before those that can follow it."""
        return [state for state in self._graph.nodes() if state in self.moments]

    def energy(self, state: State, tangents: Float[Tensor, "path point hidden"]) -> Float[Tensor, " path"]:
        """The sum of mean squares of all influences that begin with each of the tangents."""
        return self._shares @ self.moments[state].form(tangents.transpose(0, 1))

    def bound(self, state: State, tangents: Float[Tensor, "path point hidden"]) -> Float[Tensor, " path"]:
        """No path that begins with a tangent has more influence than this, in size."""
        rounding = tangents.square().sum(dim=-1) @ (self._shares * self._slack[state])
        return (self.energy(state, tangents) + rounding).sqrt()


def check_budget(case: Case, memory: int, vectors: int) -> int:
    """How many tangents the budget holds beside the moments of one sentence; at least `vectors`, or it is too small."""
    hidden, size, graph = case.model.hidden, case.model.dtype.itemsize, case.graph
    states = graph.layers * graph.steps * len(graph.kind.states)
    moments, a_vector = (states + 4) * case.points * hidden * hidden * size, case.points * hidden * size
    if memory < moments + vectors * a_vector:
        raise InputError(
            f"budget {memory:,} bytes is too small for one sentence of {graph.steps} steps at {case.points} points; the "
            f"smallest that would do is {moments + vectors * a_vector:,} (fewer points need less)"
        )
    return (memory - moments) // a_vector
