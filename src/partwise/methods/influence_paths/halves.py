"""All paths, by meeting in the middle.

1. Cut after one step: every path leaves that step exactly once, from one of its states.
2. Prefixes: for every path from the source to a state, the tangent that it carries there. Paths with a common beginning
   share its work, and all tangents at a state go through one matrix product.
3. Suffixes: likewise backwards, for every path from a state to the quantity, the adjoint.
4. The influence of a path is the product of its halves, summed over units and averaged over points: all pairs at a state
   are one matrix product.

The order of paths: the states of the cut from layer 0 up; at each, all suffixes of the first prefix, then of the second,
and so on.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from partwise.methods.influence_paths.graph import Graph, Hop, State
from partwise.methods.influence_paths.trace import Trace
from partwise.methods.influence_paths.walk import backwards, counts, forwards

Many = Float[Tensor, "_ row _"]  # of each path, at each sentence and point


class Tangents:
    """Carries the tangent of every path from the source."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def dense(self, carried: Many, hops: Sequence[Hop], layer: int, step: int, side: str) -> list[Many]:
        products = carried @ self.trace.map(side, layer).mT  # all gates at once
        factors = self.trace.factors(side, layer, step)
        return [products[..., self.trace.block(hop)] * factors[hop.gate] for hop in hops]

    def inner(self, carried: Many, layer: int, step: int) -> Many:
        return carried * self.trace.steps[layer, step].inner

    def carry(self, carried: Many, layer: int, step: int) -> Many:
        return carried * self.trace.steps[layer, step].carried

    def join(self, parts: Sequence[Many]) -> Many:
        return torch.cat(list(parts))


class Adjoints(Tangents):
    """Carries the adjoint of every path to the quantity: the same factors, the maps the other way round."""

    def dense(self, carried: Many, hops: Sequence[Hop], layer: int, step: int, side: str) -> list[Many]:
        factors, weight = self.trace.factors(side, layer, step), self.trace.map(side, layer)
        return [(carried * factors[hop.gate]) @ weight[self.trace.block(hop)] for hop in hops]


def influences(trace: Trace, cut: int, gradient: Float[Tensor, "sentence point hidden"]) -> Float[Tensor, "sentence path"]:
    """Every path's influence on the points of `trace`, with their weights."""
    sentences, points = gradient.shape[:2]
    ahead, behind = prefixes(trace, cut), suffixes(trace, cut, gradient.flatten(0, 1))
    weights = trace.inputs.weights.view(1, 1, points, 1)
    found = []
    for state in crossing(trace.graph, cut):
        tangents = (ahead[state].unflatten(1, (sentences, points)) * weights).transpose(0, 1).flatten(2)
        adjoints = behind[state].unflatten(1, (sentences, points)).transpose(0, 1).flatten(2)
        found.append((tangents @ adjoints.mT).flatten(1))
    return torch.cat(found, dim=1)


def prefixes(trace: Trace, cut: int) -> dict[State, Many]:
    walk = forwards(trace.graph, trace.tangent.unsqueeze(0), Tangents(trace))
    return next(states for step, states in enumerate(walk) if step == cut)


def suffixes(trace: Trace, cut: int, gradient: Float[Tensor, "row hidden"]) -> dict[State, Many]:
    """Of those paths that leave the step of the cut at once."""
    graph = trace.graph
    if cut + 1 == graph.steps:
        return {graph.last: gradient.unsqueeze(0)}
    found: dict[State, Many] = {}
    for _, leaving in backwards(graph, gradient.unsqueeze(0), Adjoints(trace), cut):
        found = leaving
    return found


def crossing(graph: Graph, cut: int) -> list[State]:
    """The states from which a path can leave the step of the cut, in the order of paths."""
    if cut + 1 == graph.steps:
        return [graph.last]
    kinds = [kind for kind in graph.kind.states if kind in ("h", graph.kind.carried)]
    return [State(kind, layer, cut) for layer in range(graph.layers) for kind in kinds]


def best_cut(graph: Graph) -> int:
    """The step after which to cut, so that the fewest products with matrices are needed. The last step: no cut."""
    return min(range(graph.steps), key=lambda step: products(graph, step))


def products(graph: Graph, cut: int) -> int:
    """Products of a square matrix and a vector that a cut costs, for each sentence and point."""
    to, back = counts(graph)
    dense = graph.kind.dense
    total = len(dense)
    for step in range(graph.steps):
        for layer in range(graph.layers):
            below = to[State("h", layer - 1, step)] if layer else 0
            before = to[State("h", layer, step - 1)] if step else 0
            leaving = sum(back[State(hop.to, layer, step)] for hop in dense)
            total += len(dense) * (below + before) if step <= cut else leaving * (2 if layer else 1)
    return total


def halves_held(graph: Graph, cut: int) -> int:
    """About how many vectors a sentence and point takes at the worst moment, what is being made included."""
    to, back = counts(graph)
    ahead = sum(count for state, count in to.items() if state.step in (cut - 1, cut))
    behind = sum(count for state, count in back.items() if state.step in (cut + 1, cut + 2))
    return 2 * (ahead + behind) + len(graph.kind.dense) * max(to[State("h", layer, cut)] for layer in range(graph.layers))
