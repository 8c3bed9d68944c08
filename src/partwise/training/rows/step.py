"""One training step of a whole population: forward, losses, backward, collect, update.

Everything that differs between members (rows, guidance weight, teacher forcing, frozen parts) is a tensor with a
member axis, so a step is the same few operations for one member and for a hundred.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from partwise.layers.weights import PostponedWeights
from partwise.population import Population
from partwise.training._contract import Optimiser
from partwise.training.rows.data import Rows
from partwise.training.rows.objectives import guidance_loss, row_is_right, task_loss


class TrainingStep:
    """Call it with each member's row indices and teacher-forcing draw; it updates the population in place."""

    def __init__(
        self,
        population: Population,
        rows: Rows,
        guidance: Float[Tensor, " member"],
        optimiser: Optimiser,
        totals: Float[Tensor, "2 member"] | None = None,
    ) -> None:
        """`totals` gathers every step's loss and number of right rows, until whoever reads them sets them to zero."""
        self.population, self.rows, self.guidance, self.optimiser = population, rows, guidance, optimiser
        self.guided = bool((guidance > 0).any())
        gradients = population.layout.views(optimiser.gradients)
        self.weights = PostponedWeights(population.parameters, gradients)
        self.totals = torch.zeros(2, len(population), device=population.store.device) if totals is None else totals

    @property
    def touched(self) -> list[Tensor]:
        """Every tensor that a step changes."""
        optimiser = self.optimiser
        return [self.population.store, optimiser.gradients, *optimiser.moments.values(), optimiser.alive, self.totals]

    def __call__(self, indices: Int[Tensor, "member batch"], force: Bool[Tensor, " member"]) -> None:
        batch = self.rows.take(indices)
        loss, right = self._losses(batch, force)
        loss.sum().backward()
        self.weights.collect()
        self.optimiser.step()
        self.totals[0] += loss.detach()
        self.totals[1] += right

    def _losses(self, batch: Rows, force: Tensor) -> tuple[Float[Tensor, " member"], Float[Tensor, " member"]]:
        """Each member's loss on the batch, and how many of its rows came out right."""
        output = self.population.architecture.forward(
            self.weights, batch.source, batch.source_length, batch.steps, batch.target, force.unsqueeze(-1)
        )
        counts = batch.counts
        loss = task_loss(output.logits, batch.target, counts)
        if self.guided:
            loss = loss + self.guidance * guidance_loss(output.attention, batch.alignment, counts)
        right = row_is_right(output.chosen, batch.target, counts) & batch.real
        return loss, right.sum(dim=-1).to(loss.dtype)
