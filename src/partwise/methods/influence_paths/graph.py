"""A recurrent model as a graph of gates, and the paths through it.

Nodes are the gates and states of every layer and step; a step is counted from the source's. Between *states* (an LSTM's
cell and hidden state, a GRU's hidden state) lie hops:

- dense: from below (the source's word vector, or the hidden state of the layer beneath at the same step) or from the
  layer's own hidden state a step before, by a matrix into a gate, and on to the state that the gate feeds.
  LSTM: i > c, f > c, g > c, o > h.  GRU: r > n > h, z > h, n > h (the reset gate acts on the way into the candidate).
- inner: unit by unit within a step. LSTM: c > h.
- carried: unit by unit to the next step. LSTM: c > c.  GRU: h > h.

Every path from the source `x` to the quantity `q` is a chain of hops, and every chain is a path. A label spells its nodes out:
`x>g0@0>c0@0>h0@0>g1@0>c1@0>c1@1>h1@1>q` (node, layer, `@` step).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from partwise.errors import InputError, unknown
from partwise.layers import recurrence

SOURCE, QUANTITY = "x", "q"


class Hop(NamedTuple):
    """A way into a step: the gate whose map is multiplied, the nodes passed on the way, and the state where it ends."""

    gate: str
    via: tuple[str, ...]
    to: str

    def label(self, layer: int, step: int) -> str:
        """What the hop adds to a path's label."""
        return "".join(f">{node}{layer}@{step}" for node in (*self.via, self.to))


@dataclass(frozen=True)
class Cell:
    """`gates` in the order of their rows; `states` in the order in which a step computes them, the hidden state last; `sites`
    names both as the model's sites do."""

    gates: tuple[str, ...]
    states: tuple[str, ...]
    dense: tuple[Hop, ...]
    inner: tuple[tuple[str, str], ...]
    carried: str
    sites: Mapping[str, str]

    @property
    def nodes(self) -> tuple[str, ...]:
        return (*self.gates, *self.states)


CELLS = {
    "lstm": Cell(
        gates=("i", "f", "g", "o"),
        states=("c", "h"),
        dense=(Hop("i", ("i",), "c"), Hop("f", ("f",), "c"), Hop("g", ("g",), "c"), Hop("o", ("o",), "h")),
        inner=(("c", "h"),),
        carried="c",
        sites=dict(zip(recurrence.SITES["lstm"], "ifgoch", strict=True)),
    ),
    "gru": Cell(
        gates=("r", "z", "n"),
        states=("h",),
        dense=(Hop("r", ("r", "n"), "h"), Hop("z", ("z",), "h"), Hop("n", ("n",), "h")),
        inner=(),
        carried="h",
        sites=dict(zip(recurrence.SITES["gru"], "rznh", strict=True)),
    ),
}


class State(NamedTuple):
    """A node by its place: `State("c", 1, 0)` is the second layer's cell at the source's own step, `c1@0` in labels."""

    kind: str
    layer: int
    step: int

    def __str__(self) -> str:
        return f"{self.kind}{self.layer}@{self.step}"

    @classmethod
    def parse(cls, node: str) -> State:
        layer, step = node[1:].split("@")
        return cls(node[0], int(layer), int(step))


@dataclass(frozen=True)
class Graph:
    """The graph of one cell, so many layers deep and so many steps long (the source's step included)."""

    cell: str
    layers: int
    steps: int

    def __post_init__(self) -> None:
        if self.cell not in CELLS:
            raise unknown("cell", self.cell, CELLS)
        for name in ("layers", "steps"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 1 or more")

    @property
    def kind(self) -> Cell:
        return CELLS[self.cell]

    def nodes(self) -> list[State]:
        """Every gate and state of every layer and step, each after all that it is computed from."""
        steps, layers = range(self.steps), range(self.layers)
        return [State(name, layer, step) for step in steps for layer in layers for name in self.kind.nodes]

    def gates(self) -> list[State]:
        return [node for node in self.nodes() if node.kind in self.kind.gates]

    @property
    def last(self) -> State:
        """The state that the quantity is read from."""
        return State("h", self.layers - 1, self.steps - 1)
