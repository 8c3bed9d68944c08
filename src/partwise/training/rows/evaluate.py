"""How well a population does: greedy decoding, no teacher forcing, as many steps as the target has."""

from __future__ import annotations

from dataclasses import fields

import torch
from jaxtyping import Float
from torch import Tensor

from partwise.population import Population
from partwise.training.rows.data import Rows
from partwise.training.rows.objectives import row_is_right, surprise

_CHUNK = 256  # rows at a time, so that long splits fit into memory


@torch.no_grad()
def accuracy_and_loss(population: Population, rows: Rows) -> tuple[Float[Tensor, " member"], Float[Tensor, " member"]]:
    """Sequence accuracy and task loss of every member on its rows."""
    weights = population.weights()
    total = rows.source.shape[-2]
    right = torch.zeros(len(population), device=rows.source.device)
    loss, counted = torch.zeros(2, len(population), rows.steps, device=rows.source.device)
    for start in range(0, total, _CHUNK):
        part = Rows(**{field.name: getattr(rows, field.name)[:, start : start + _CHUNK] for field in fields(rows)})
        output = population.architecture.forward(weights, part.source, part.source_length, part.steps)
        counts = part.counts
        right = right + (row_is_right(output.chosen, part.target, counts) & part.real).sum(dim=-1)
        loss = loss + torch.where(counts, surprise(output.logits, part.target), 0.0).sum(dim=-2)
        counted = counted + counts.sum(dim=-2)
    return right / rows.real.sum(dim=-1), (loss / counted.clamp_min(1)).sum(dim=-1)
