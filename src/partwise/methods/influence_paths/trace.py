"""The gates of every layer and step at every point, and the local derivatives that hops are made of.

With the source's vector at one of the points, the model is read from the source's step to the last. `Trace` keeps, for
each layer and step, what a tangent is multiplied with on each hop (N is sentence times point; all are (N, hidden)):

LSTM   i > c: i (1 - i) g      f > c: f (1 - f) c_old   g > c: (1 - g^2) i     o > h: o (1 - o) tanh c
       c > h: o (1 - tanh^2 c)    carried c > c: f
GRU    r > n > h: r (1 - r) (W_hn h_old + b_hn) (1 - n^2) (1 - z)     z > h: z (1 - z) (h_old - n)
       n > h: (1 - n^2) (1 - z), and times r when it comes from the old hidden state     carried h > h: z
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from partwise.methods._sentences import Sentences, read_through
from partwise.methods.influence_paths.graph import CELLS, Graph, Hop
from partwise.methods.influence_paths.inputs import Inputs
from partwise.twins.readable import Readable

Values = Float[Tensor, "row hidden"]


@dataclass(frozen=True)
class Step:
    """The local derivatives of one layer at one step, by the name of the gate, and unit by unit."""

    below: dict[str, Values]
    before: dict[str, Values]
    carried: Values
    inner: Values
    """All ones for a cell without inner hops."""


@dataclass(frozen=True)
class Trace:
    """Everything that paths of some sentences need; rows are sentence by sentence, point by point."""

    model: Readable
    graph: Graph
    inputs: Inputs
    steps: dict[tuple[int, int], Step]
    last: Float[Tensor, "sentence point hidden"]

    @property
    def tangent(self) -> Float[Tensor, "row width"]:
        """The direction of change, once a point."""
        points = self.inputs.values.shape[1]
        return self.inputs.direction.repeat_interleave(points, dim=0)

    def map(self, side: str, layer: int) -> Float[Tensor, "gates _"]:
        """The matrix from below, or from the layer's own old hidden state, into all gates."""
        return self.model.parameters[f"layer{layer}.{'input' if side == 'below' else 'recurrent'}.weight"]

    def factors(self, side: str, layer: int, step: int) -> dict[str, Values]:
        here = self.steps[layer, step]
        return here.below if side == "below" else here.before

    def block(self, hop: Hop) -> slice:
        """The rows of a map that belong to a hop's gate."""
        place, hidden = CELLS[self.graph.cell].gates.index(hop.gate), self.model.hidden
        return slice(place * hidden, (place + 1) * hidden)


@torch.no_grad()
def trace(model: Readable, graph: Graph, read: Sentences, source: int, inputs: Inputs) -> Trace:
    """Read the sentences from the source's step on, with every point in the source's place. Sentences have equal lengths
    here."""
    state = read.start
    if source:
        _, state = read_through(model, read.vectors[:, :source], state)
    sentences, points, width = inputs.values.shape
    x = read.vectors[:, source : source + graph.steps].unsqueeze(1).repeat(1, points, 1, 1)
    x[:, :, 0] = inputs.values
    x = x.reshape(sentences * points, graph.steps, width)
    steps: dict[tuple[int, int], Step] = {}
    for layer in range(graph.layers):
        rows = [part.expand(sentences, -1).repeat_interleave(points, dim=0) for part in state[layer]]
        from_below = model.weights.linear(f"layer{layer}.input", x)
        outputs = []
        for step in range(graph.steps):
            from_before = model.weights.linear(f"layer{layer}.recurrent", rows[0])
            open_step = _lstm if graph.cell == "lstm" else _gru
            rows, steps[layer, step] = open_step(from_below[:, step], from_before, rows)
            outputs.append(rows[0])
        x = torch.stack(outputs, dim=1)
    return Trace(model, graph, inputs, steps, x[:, -1].view(sentences, points, -1))


def _lstm(from_below: Tensor, from_before: Tensor, state: list[Tensor]) -> tuple[list[Tensor], Step]:
    i, f, g, o = (from_below + from_before).chunk(4, dim=-1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cell = f * state[1] + i * g
    squashed = cell.tanh()
    dense = {
        "i": i * (1 - i) * g,
        "f": f * (1 - f) * state[1],
        "g": (1 - g * g) * i,
        "o": o * (1 - o) * squashed,
    }
    return [o * squashed, cell], Step(dense, dense, carried=f, inner=o * (1 - squashed * squashed))


def _gru(from_below: Tensor, from_before: Tensor, state: list[Tensor]) -> tuple[list[Tensor], Step]:
    (r, z, n), (r_before, z_before, n_before) = from_below.chunk(3, dim=-1), from_before.chunk(3, dim=-1)
    r, z = (r + r_before).sigmoid(), (z + z_before).sigmoid()
    n = (n + r * n_before).tanh()
    to_hidden = (1 - n * n) * (1 - z)
    below = {"r": r * (1 - r) * n_before * to_hidden, "z": z * (1 - z) * (state[0] - n), "n": to_hidden}
    hidden = (1 - z) * n + z * state[0]
    return [hidden], Step(below, below | {"n": to_hidden * r}, carried=z, inner=torch.ones_like(z))
