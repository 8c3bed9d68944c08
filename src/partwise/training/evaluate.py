"""How well a population does: greedy decoding, no teacher forcing, as many steps as the target has."""

from __future__ import annotations

from dataclasses import fields

import torch
from jaxtyping import Float
from torch import Tensor

from partwise.population import Population
from partwise.training.data import Rows
from partwise.training.objectives import row_is_right, task_loss

_CHUNK = 256  # rows at a time, so that long splits fit into memory


@torch.no_grad()
def accuracy_and_loss(population: Population, rows: Rows) -> tuple[Float[Tensor, " member"], Float[Tensor, " member"]]:
    """Sequence accuracy and task loss of every member on its rows."""
    weights = population.weights()
    total = rows.source.shape[-2]
    right, loss = torch.zeros(2, len(population), device=rows.source.device, dtype=population.store.dtype)
    for start in range(0, total, _CHUNK):
        part = Rows(**{field.name: getattr(rows, field.name)[:, start : start + _CHUNK] for field in fields(rows)})
        output = population.architecture.forward(weights, part.source, part.source_length, part.steps)
        counts = part.counts
        real = part.real.sum(dim=-1)
        right = right + (row_is_right(output.chosen, part.target, counts) & part.real).sum(dim=-1)
        loss = loss + task_loss(output.logits, part.target, counts) * real
    rows_of_member = rows.real.sum(dim=-1)
    return right / rows_of_member, loss / rows_of_member
