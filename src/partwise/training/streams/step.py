"""One training step of a population of language models on one window: forward, loss, backward, update; the state is carried on.

Two routes to the same numbers. Stacked: all members at once over the member axis, which a GPU can capture as one graph.
One by one: each member through fused modules, which is what a CPU does fastest.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from partwise.layers.weights import PostponedWeights
from partwise.models.language_model import LanguageModel
from partwise.population import Population
from partwise.training._contract import Optimiser
from partwise.training.streams import fused
from partwise.training.streams.data import NOTHING, split_window


def mean_surprise(logits: Float[Tensor, "*member stream time word"], wanted: Int[Tensor, "*member stream time"]) -> Tensor:
    """Each member's mean of -log P(wanted word), over the words that are there; nats."""
    flat = functional.cross_entropy(logits.flatten(0, -2), wanted.flatten(), ignore_index=NOTHING, reduction="none")
    lost = flat.view(wanted.shape).sum(dim=(-2, -1))
    return lost / (wanted != NOTHING).sum(dim=(-2, -1)).clamp_min(1)


class StreamStep:
    """Call it with a window of every member; `begin` before the first window of a text. `total` sums up the losses."""

    def __init__(self, population: Population, optimiser: Optimiser, streams: int, *, stacked: bool) -> None:
        self.population, self.optimiser = population, optimiser
        self.sizes: LanguageModel = population.architecture  # type: ignore[assignment]
        self.total = population.store.new_zeros(len(population))
        self.state = self.sizes.start(population.store, (len(population), streams))
        self.state = tuple(tuple(part.clone() for part in layer) for layer in self.state)  # buffers of their own
        gradients = population.layout.views(optimiser.gradients)
        parameters, shared = population.parameters, population.shared
        self._run = self._stacked if stacked else self._one_by_one
        if stacked:
            self._weights = PostponedWeights(parameters, gradients, shared)
        else:
            self._leaves = [
                fused.Leaves(_row(parameters, row), _row(gradients, row), shared).parameters for row in range(len(population))
            ]

    @property
    def touched(self) -> list[Tensor]:
        """Every tensor that a step changes."""
        optimiser, states = self.optimiser, [part for layer in self.state for part in layer]
        return [self.population.store, optimiser.gradients, *optimiser.moments.values(), optimiser.alive, self.total, *states]

    def begin(self) -> None:
        """Before the first word the state is zero."""
        for layer in self.state:
            for part in layer:
                part.zero_()

    def __call__(self, piece: Int[Tensor, "member stream word"]) -> None:
        ids, wanted = split_window(piece)
        self.total += self._run(ids, wanted)
        self.optimiser.step()

    def _stacked(self, ids: Tensor, wanted: Tensor) -> Float[Tensor, " member"]:
        said = self.sizes.forward(self._weights, ids, self.state)
        loss = mean_surprise(said.logits, wanted)
        loss.sum().backward()
        self._weights.collect()
        for old, new in zip(self.state, said.state, strict=True):
            for buffer, values in zip(old, new, strict=True):
                buffer.copy_(values.detach())
        return loss.detach()

    def _one_by_one(self, ids: Tensor, wanted: Tensor) -> Float[Tensor, " member"]:
        losses = torch.zeros_like(self.total)
        self.optimiser.gradients.zero_()
        for row, leaves in enumerate(self._leaves):
            state = tuple(tuple(part[row] for part in layer) for layer in self.state)
            logits, new = fused.scores(self.sizes, leaves, ids[row], state)
            loss = mean_surprise(logits, wanted[row])
            loss.backward()
            losses[row] = loss.detach()
            for old, values in zip(state, new, strict=True):
                for buffer, value in zip(old, values, strict=True):
                    buffer.copy_(value.detach())
        return losses


def _row(named: Mapping[str, Tensor], row: int) -> dict[str, Tensor]:
    return {name: values[row] for name, values in named.items()}
