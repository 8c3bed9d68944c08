"""Influence paths a second time, by brute force: every node a function of its parents, every edge an explicit Jacobian,
every path enumerated, one sentence and one point at a time. Nothing here is shared with the package.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

Node = str
Function = Callable[..., Tensor]


class Sentence:
    """The graph of one sentence, from the source's step on: `parents[node]` in the order in which `function[node]` takes
    them."""

    def __init__(self, cell: str, module: Any, words: Tensor, state: list[tuple[Tensor, ...]], quantity: Function) -> None:
        self.parents: dict[Node, list[Node]] = {"x": []}
        self.function: dict[Node, Function] = {}
        self.value: dict[Node, Tensor] = {"x": words[0]}
        for step in range(len(words)):
            for layer in range(len(state)):
                below = f"h{layer - 1}@{step}" if layer else "x" if step == 0 else f"word@{step}"
                old = [f"{kind}{layer}@{step - 1}" for kind in "hc"[: len(state[layer])]]
                for name, value in zip(old, state[layer], strict=True):
                    if step == 0:
                        self._constant(name, value)
                if layer == 0 and step:
                    self._constant(below, words[step])
                (self._lstm if cell == "lstm" else self._gru)(module, layer, step, below, old)
        self._add("q", [f"h{len(state) - 1}@{len(words) - 1}"], quantity)

    def _constant(self, name: Node, value: Tensor) -> None:
        self.parents[name], self.value[name] = [], value

    def _add(self, name: Node, parents: list[Node], function: Function) -> None:
        self.parents[name], self.function[name] = parents, function
        self.value[name] = function(*(self.value[parent] for parent in parents))

    def _lstm(self, module: Any, layer: int, step: int, below: Node, old: list[Node]) -> None:
        w, u, b, d = (getattr(module, f"{kind}_l{layer}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        hidden = u.shape[1]
        at = f"{layer}@{step}"
        for place, gate in enumerate("ifgo"):
            rows = slice(place * hidden, (place + 1) * hidden)
            squash = torch.tanh if gate == "g" else torch.sigmoid

            def value(x: Tensor, h: Tensor, rows: slice = rows, squash: Function = squash) -> Tensor:
                return squash(w[rows] @ x + b[rows] + u[rows] @ h + d[rows])

            self._add(gate + at, [below, old[0]], value)
        self._add("c" + at, ["f" + at, old[1], "i" + at, "g" + at], lambda f, c, i, g: f * c + i * g)
        self._add("h" + at, ["o" + at, "c" + at], lambda o, c: o * torch.tanh(c))

    def _gru(self, module: Any, layer: int, step: int, below: Node, old: list[Node]) -> None:
        w, u, b, d = (getattr(module, f"{kind}_l{layer}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        n = u.shape[1]
        at = f"{layer}@{step}"

        def gate(place: int) -> Function:
            rows = slice(place * n, (place + 1) * n)
            return lambda x, h: torch.sigmoid(w[rows] @ x + b[rows] + u[rows] @ h + d[rows])

        self._add("r" + at, [below, old[0]], gate(0))
        self._add("z" + at, [below, old[0]], gate(1))
        rows = slice(2 * n, 3 * n)
        self._add(
            "n" + at, [below, "r" + at, old[0]],
            lambda x, r, h: torch.tanh(w[rows] @ x + b[rows] + r * (u[rows] @ h + d[rows])),
        )  # fmt: skip
        self._add("h" + at, ["z" + at, "n" + at, old[0]], lambda z, new, h: (1 - z) * new + z * h)

    def jacobian(self, node: Node, parent: Node) -> Tensor:
        place = self.parents[node].index(parent)
        values = [self.value[name] for name in self.parents[node]]

        def along(x: Tensor) -> Tensor:
            return self.function[node](*values[:place], x, *values[place + 1 :])

        found: Any = torch.autograd.functional.jacobian(along, values[place])
        return found.reshape(-1, values[place].numel())

    def paths(self, node: Node = "q") -> Iterator[list[Node]]:
        """Every path from the source to a node."""
        if node == "x":
            yield ["x"]
        for parent in self.parents[node]:
            for path in self.paths(parent):
                yield [*path, node]


def influences(
    cell: str, module: Any, words: Tensor, state: list[tuple[Tensor, ...]], quantity: Function, baseline: Tensor,
    places: np.ndarray, weights: np.ndarray,
) -> tuple[dict[str, float], dict[str, Tensor]]:  # fmt: skip
    """By label: every path's influence; and what each path shares out to the units of the last cell (or hidden state)."""
    total: dict[str, float] = {}
    units: dict[str, Tensor] = {}
    direction = words[0] - baseline
    for place, weight in zip(places, weights, strict=True):
        here = Sentence(cell, module, torch.cat(((baseline + place * direction)[None], words[1:])), state, quantity)
        edges: dict[tuple[Node, Node], Tensor] = {}
        for path in here.paths():
            carried = direction
            for parent, node in itertools.pairwise(path):
                if (parent, node) not in edges:
                    edges[parent, node] = here.jacobian(node, parent)
                if node == "q":
                    shares = weight * edges[parent, node].flatten() * carried
                carried = edges[parent, node] @ carried
            label = ">".join(path)
            total[label] = total.get(label, 0.0) + weight * float(carried)
            units[label] = units.get(label, torch.zeros(1)) + shares
    return total, units
