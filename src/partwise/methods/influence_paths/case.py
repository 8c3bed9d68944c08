"""What is asked, checked: a model, its sentences, the source and the steps from there, the inputs, and the quantity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from partwise.errors import InputError
from partwise.methods._sentences import Sentences, sentences
from partwise.methods.influence_paths.graph import Graph
from partwise.methods.influence_paths.inputs import Inputs, any_inputs, baseline_of, on_a_line
from partwise.methods.influence_paths.quantity import Quantity, quantity_of
from partwise.methods.influence_paths.trace import Trace, trace
from partwise.twins.readable import Readable, readable

_BEST_ON_CPU = 256 * 10**6  # bytes: with more at a time, freeing and asking for memory takes longer than the work (measured)


@dataclass(frozen=True)
class Case:
    """Of one model. Sentences are as long as their target; `rows` says which of the caller's sentences they are."""

    model: Readable
    read: Sentences
    graph: Graph
    source: int
    inputs: Inputs
    quantity: Quantity
    rows: Int[Tensor, " sentence"]

    @property
    def points(self) -> int:
        return self.inputs.values.shape[1]

    def part(self, chosen: Tensor, start: int, stop: int) -> Case:
        """Some sentences, some points."""
        inputs = self.inputs.rows(chosen).some_points(start, stop)
        return Case(self.model, self.read.rows(chosen), self.graph, self.source, inputs, self.quantity, self.rows[chosen])

    def trace(self) -> Trace:
        return trace(self.model, self.graph, self.read, self.source, self.inputs)

    def gradient(self, traced: Trace) -> Float[Tensor, "sentence point hidden"]:
        """Of the quantity, at every point's last hidden state."""
        return self.quantity.gradient(traced.last, self.rows)

    def chunks(self, vectors: int, memory: int, *, numbers: int = 0) -> Iterator[Case]:
        """As many sentences, and if need be points, at a time as the budget holds. `vectors` are held at the worst moment for
        each sentence and point, `numbers` for each sentence; a budget too small for one of both is refused."""
        size, hidden, graph = self.model.dtype.itemsize, self.model.hidden, self.graph
        local = (2 * len(graph.kind.gates) + 3) * graph.layers * graph.steps + 2 * self.read.time
        a_point = (vectors + local) * hidden * size
        a_sentence = numbers * size
        if memory < a_point + a_sentence:
            raise InputError(
                f"budget {memory:,} bytes is too small for one sentence; the smallest that would do is {a_point + a_sentence:,}"
            )
        points = min(self.points, (memory - a_sentence) // a_point)
        room = memory if self.rows.is_cuda else min(memory, _BEST_ON_CPU)
        rows = max(1, room // (points * a_point + a_sentence)) if points == self.points else 1
        for chosen in torch.arange(len(self.rows), device=self.rows.device).split(rows):
            for start in range(0, self.points, points):
                yield self.part(chosen, start, min(start + points, self.points))


def cases(
    model: Any,
    method: str,
    ids: Any,
    *,
    source: int,
    contrast: Any,
    baseline: Any = None,
    points: int = 50,
    rule: str = "midpoint",
    inputs: Any = None,
    lengths: Any = None,
    init: Any = "zero",
    dtype: torch.dtype | None = None,
) -> tuple[list[Case], tuple[str, ...] | None]:
    """One case a member (one in all for a single model), and the members' names."""
    known = readable(model, method, dtype)
    found = []
    for single in known.of_members():
        read = _up_to_target(sentences(single, ids, lengths, init))
        if isinstance(source, bool) or not isinstance(source, (int, np.integer)) or not 0 <= source < read.time:
            raise InputError(
                f"source is {source!r}; it must be a position from 0 to {read.time - 1}, not after the target, which is "
                "the last word"
            )
        word = read.vectors[:, source]
        given = (
            on_a_line(word, baseline_of(single, baseline, len(word)), points, rule)
            if inputs is None
            else any_inputs(single, inputs, word)
        )
        graph = Graph(single.cell, single.layers, read.time - int(source))
        rows = torch.arange(len(word), device=word.device)
        found.append(Case(single, read, graph, int(source), given, quantity_of(single, contrast, len(word)), rows))
    return found, known.members


def _up_to_target(read: Sentences) -> Sentences:
    """The sentences without padding."""
    lengths = sorted(set(read.lengths.tolist()))
    if len(lengths) > 1:
        raise InputError(
            f"lengths holds {', '.join(map(str, lengths))}; the paths of one call have equally many steps, so call once "
            "for each"
        )
    return Sentences(read.vectors[:, : lengths[0]], read.lengths, read.start)
