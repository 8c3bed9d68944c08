"""One path, hop by hop: from its label to what it carries."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from partwise.errors import InputError
from partwise.methods.influence_paths.graph import QUANTITY, SOURCE, Graph, Hop, State
from partwise.methods.influence_paths.halves import Adjoints, Tangents
from partwise.methods.influence_paths.trace import Trace
from partwise.methods.influence_paths.walk import BEFORE, BELOW

Values = Float[Tensor, "row _"]


class Move(NamedTuple):
    """One hop of a path: dense where there is a `hop`, else unit by unit; `to` is the state it ends at."""

    to: State
    hop: Hop | None
    side: str

    @property
    def label(self) -> str:
        """What the hop adds to a path's label."""
        return f">{self.to}" if self.hop is None else self.hop.label(self.to.layer, self.to.step)


def moves(graph: Graph, label: str) -> list[Move]:
    """The hops of a path; a label that names no path of this graph is answered with where it goes wrong."""
    nodes = label.split(">")
    if len(nodes) < 3 or nodes[0] != SOURCE or nodes[-1] != QUANTITY:
        raise InputError(f"{label!r} is no path: a label goes from {SOURCE} to {QUANTITY}, like x>g0@0>c0@0>h0@0>q")
    found: list[Move] = []
    place = 1
    while place < len(nodes) - 1:
        rest, here = nodes[place:-1], found[-1].to if found else None
        fitting = [move for move in following(graph, here) if rest[: len(_nodes(move))] == _nodes(move)]
        if not fitting:
            allowed = sorted({_nodes(move)[0] for move in following(graph, here)})
            where = nodes[place - 1]
            raise InputError(f"{label!r} is no path: {rest[0]} cannot follow {where}; allowed: {', '.join(allowed) or 'q'}")
        found.append(fitting[0])
        place += len(_nodes(fitting[0]))
    if found[-1].to != graph.last:
        raise InputError(f"{label!r} is no path: {QUANTITY} is read from {graph.last}, not from {found[-1].to}")
    return found


def following(graph: Graph, here: State | None) -> list[Move]:
    """Every hop from a state, or from the source (None)."""
    if here is None:
        return [Move(State(hop.to, 0, 0), hop, BELOW) for hop in graph.kind.dense]
    name, layer, step = here
    found = []
    if name == "h" and layer + 1 < graph.layers:
        found += [Move(State(hop.to, layer + 1, step), hop, BELOW) for hop in graph.kind.dense]
    if name == "h" and step + 1 < graph.steps:
        found += [Move(State(hop.to, layer, step + 1), hop, BEFORE) for hop in graph.kind.dense]
    found += [Move(State(end, layer, step), None, "inner") for start, end in graph.kind.inner if start == name]
    if name == graph.kind.carried and step + 1 < graph.steps:
        found.append(Move(State(name, layer, step + 1), None, "carried"))
    return found


def tangents(trace: Trace, path: list[Move]) -> list[Values]:
    """What the path carries to each of its states."""
    carrier, carried, found = Tangents(trace), trace.tangent.unsqueeze(0), []
    for move in path:
        carried = _along(carrier, carried, move)
        found.append(carried.squeeze(0))
    return found


def adjoints(trace: Trace, path: list[Move], gradient: Values) -> list[Values]:
    """The same from the other end: at each of its states, how the quantity changes along the rest of the path."""
    carrier, carried, found = Adjoints(trace), gradient.unsqueeze(0), [gradient]
    for move in reversed(path[1:]):
        carried = _along(carrier, carried, move)
        found.append(carried.squeeze(0))
    return found[::-1]


def longest_stretch(path: list[Move]) -> int:
    """The number of the state with which the longest run of unit-by-unit hops ends (of equally long ones, the last)."""
    ends, run = [], 0
    for place, move in enumerate(path):
        run = run + 1 if move.hop is None else 0
        ends.append((run, place))
    return max(ends)[1]


def extend(
    carrier: Tangents, here: State | None, tangents: Float[Tensor, "path row _"]
) -> tuple[list[Move], list[Float[Tensor, "path row _"]]]:
    """Every hop from a state (or from the source), and what all tangents become on each: one product for all gates of a
    side."""
    found: list[Move] = []
    arrived: list[Tensor] = []
    every = following(carrier.trace.graph, here)
    for side in (BELOW, BEFORE):
        dense = [move for move in every if move.side == side]
        if dense:
            to, hops = dense[0].to, [move.hop for move in dense if move.hop is not None]
            found += dense
            arrived += carrier.dense(tangents, hops, to.layer, to.step, side)
    for move in every:
        if move.hop is None:
            found.append(move)
            arrived.append(_along(carrier, tangents, move))
    return found, arrived


def _along(carrier: Tangents, carried: Tensor, move: Move) -> Tensor:
    layer, step = move.to.layer, move.to.step
    if move.hop is not None:
        return carrier.dense(carried, [move.hop], layer, step, move.side)[0]
    return carrier.inner(carried, layer, step) if move.side == "inner" else carrier.carry(carried, layer, step)


def _nodes(move: Move) -> list[str]:
    return move.label.split(">")[1:]
