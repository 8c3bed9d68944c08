"""Walking through the graph, forwards from the source or backwards from the quantity, carrying anything along.

What is carried is up to the carrier: numbers (to count paths), labels (to name them), tangents and adjoints of every path, or
sums of them. A carrier says what becomes of it on each kind of hop, and how what arrives from several sides is joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from partwise.methods.influence_paths.graph import Graph, Hop, State

T = TypeVar("T")
BELOW, BEFORE = "below", "before"


@runtime_checkable
class Carrier(Protocol[T]):
    """`layer` and `step` are those of the later end of a hop, whichever way one walks."""

    def dense(self, carried: T, hops: Sequence[Hop], layer: int, step: int, side: str) -> list[T]:
        """Forwards: from below or before into each of the hops. Backwards: `carried` is at the end of the one hop given."""
        ...

    def inner(self, carried: T, layer: int, step: int) -> T: ...

    def carry(self, carried: T, layer: int, step: int) -> T: ...

    def join(self, parts: Sequence[T]) -> T: ...


def forwards(graph: Graph, source: T, how: Carrier[T]) -> Iterator[dict[State, T]]:
    """Step by step, what arrives at each state from the source."""
    kind = graph.kind
    old: dict[State, T] = {}
    for step in range(graph.steps):
        new: dict[State, T] = {}
        for layer in range(graph.layers):
            arriving: dict[str, list[T]] = {name: [] for name in kind.states}
            origins: list[tuple[str, T]] = []
            if layer or step == 0:
                origins.append((BELOW, new[State("h", layer - 1, step)] if layer else source))
            if step:
                origins.append((BEFORE, old[State("h", layer, step - 1)]))
            for side, origin in origins:
                for hop, part in zip(kind.dense, how.dense(origin, kind.dense, layer, step, side), strict=True):
                    arriving[hop.to].append(part)
            if step:
                arriving[kind.carried].append(how.carry(old[State(kind.carried, layer, step - 1)], layer, step))
            for name in kind.states:
                arriving[name] += [
                    how.inner(new[State(start, layer, step)], layer, step) for start, end in kind.inner if end == name
                ]
                new[State(name, layer, step)] = how.join(arriving[name])
        yield new
        old = new


def backwards(graph: Graph, quantity: T, how: Carrier[T], until: int = 0) -> Iterator[tuple[dict[State, T], dict[State, T]]]:
    """Step by step from the last: what arrives at each state from the quantity; and how much of it comes from the next step."""
    kind = graph.kind
    after: dict[State, T] = {}
    for step in reversed(range(until, graph.steps)):
        new: dict[State, T] = {}
        leaving: dict[State, T] = {}
        for layer in reversed(range(graph.layers)):
            for name in reversed(kind.states):
                state = State(name, layer, step)
                later = _from_next_step(graph, after, how, state)
                if later:
                    leaving[state] = how.join(later)
                now = [quantity] if state == graph.last else []
                if name == "h" and layer + 1 < graph.layers:
                    for hop in kind.dense:
                        now += how.dense(new[State(hop.to, layer + 1, step)], [hop], layer + 1, step, BELOW)
                now += [how.inner(new[State(end, layer, step)], layer, step) for start, end in kind.inner if start == name]
                new[state] = how.join([*([leaving[state]] if later else []), *now])
        yield new, leaving
        after = new


def _from_next_step(graph: Graph, after: dict[State, T], how: Carrier[T], state: State) -> list[T]:
    name, layer, step = state
    if step + 1 == graph.steps:
        return []
    parts: list[T] = []
    if name == "h":
        for hop in graph.kind.dense:
            parts += how.dense(after[State(hop.to, layer, step + 1)], [hop], layer, step + 1, BEFORE)
    if name == graph.kind.carried:
        parts.append(how.carry(after[State(name, layer, step + 1)], layer, step + 1))
    return parts


class Count:
    """Carries how many paths there are."""

    def dense(self, carried: int, hops: Sequence[Hop], layer: int, step: int, side: str) -> list[int]:
        return [carried] * len(hops)

    def inner(self, carried: int, layer: int, step: int) -> int:
        return carried

    def carry(self, carried: int, layer: int, step: int) -> int:
        return carried

    def join(self, parts: Sequence[int]) -> int:
        return sum(parts)


def counts(graph: Graph) -> tuple[dict[State, int], dict[State, int]]:
    """How many paths lead from the source to each state, and from each state to the quantity."""
    to = {state: count for step in forwards(graph, 1, Count()) for state, count in step.items()}
    back = {state: count for step, _ in backwards(graph, 1, Count()) for state, count in step.items()}
    return to, back


def count_paths(steps: int, layers: int, cell: str = "lstm") -> int:
    """How many gate-level paths lead from a source word to the quantity; `steps` counts the source's own."""
    graph = Graph(cell, layers, steps)
    return counts(graph)[0][graph.last]
