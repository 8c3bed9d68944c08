"""The names of paths, in the order in which their influences come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from partwise.methods.influence_paths.graph import QUANTITY, SOURCE, Graph, Hop, State
from partwise.methods.influence_paths.halves import crossing
from partwise.methods.influence_paths.walk import backwards, forwards


class Begin:
    """Carries the beginnings of labels, from the source on."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def dense(self, carried: list[str], hops: Sequence[Hop], layer: int, step: int, side: str) -> list[list[str]]:
        return [[start + hop.label(layer, step) for start in carried] for hop in hops]

    def inner(self, carried: list[str], layer: int, step: int) -> list[str]:
        return self._on(carried, State(self.graph.kind.inner[0][1], layer, step))

    def carry(self, carried: list[str], layer: int, step: int) -> list[str]:
        return self._on(carried, State(self.graph.kind.carried, layer, step))

    def join(self, parts: Sequence[list[str]]) -> list[str]:
        return [label for part in parts for label in part]

    def _on(self, carried: list[str], state: State) -> list[str]:
        return [f"{start}>{state}" for start in carried]


class End(Begin):
    """Carries the ends of labels, back from the quantity."""

    def dense(self, carried: list[str], hops: Sequence[Hop], layer: int, step: int, side: str) -> list[list[str]]:
        return [[hop.label(layer, step) + end for end in carried] for hop in hops]

    def _on(self, carried: list[str], state: State) -> list[str]:
        return [f">{state}{end}" for end in carried]


def labels(graph: Graph, cut: int) -> Iterator[str]:
    """Every path's label, in the order of `halves.influences`."""
    ahead = next(states for step, states in enumerate(forwards(graph, [SOURCE], Begin(graph))) if step == cut)
    behind = {graph.last: [f">{QUANTITY}"]}
    if cut + 1 < graph.steps:
        for _, leaving in backwards(graph, [f">{QUANTITY}"], End(graph), cut):
            behind = leaving
    for state in crossing(graph, cut):
        yield from (start + end for start in ahead[state] for end in behind[state])
