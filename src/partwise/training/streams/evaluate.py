"""How surprised language models are by a text: the mean of -log P(word), in nats; its exponential is perplexity."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from partwise.models.language_model import LanguageModel
from partwise.population import Population
from partwise.training.streams import fused
from partwise.training.streams.data import NOTHING, Text, split_window
from partwise.training.streams.step import mean_surprise


@torch.no_grad()
def text_loss(population: Population, text: Text, *, stacked: bool) -> Float[Tensor, " member"]:
    """Each member's mean surprise at the words of its text, its streams read side by side from a zero state."""
    sizes: LanguageModel = population.architecture  # type: ignore[assignment]
    read = _read_stacked if stacked else _read_one_by_one
    state = sizes.start(population.store, (len(population), text.ids.shape[1]))
    lost, counted = torch.zeros(2, len(population), dtype=torch.float64, device=population.store.device)
    for piece in text:
        ids, wanted = split_window(piece)
        means, state = read(population, ids, wanted, state)
        here = (wanted != NOTHING).sum(dim=(-2, -1))
        lost, counted = lost + means * here, counted + here
    return (lost / counted).float()


def _read_stacked(population: Population, ids: Tensor, wanted: Tensor, state: tuple) -> tuple[Tensor, tuple]:
    sizes: LanguageModel = population.architecture  # type: ignore[assignment]
    said = sizes.forward(population.weights(), ids, state)
    return mean_surprise(said.logits, wanted), said.state


def _read_one_by_one(population: Population, ids: Tensor, wanted: Tensor, state: tuple) -> tuple[Tensor, tuple]:
    sizes: LanguageModel = population.architecture  # type: ignore[assignment]
    parameters, means, lasts = population.parameters, [], []
    for row in range(len(population)):
        own = {name: values[row] for name, values in parameters.items()}
        before = tuple(tuple(part[row] for part in layer) for layer in state)
        logits, last = fused.scores(sizes, own, ids[row], before)
        means.append(mean_surprise(logits, wanted[row]))
        lasts.append(last)
    joined = tuple(
        tuple(torch.stack([last[layer][part] for last in lasts]) for part in range(len(state[layer])))
        for layer in range(len(state))
    )
    return torch.stack(means), joined
