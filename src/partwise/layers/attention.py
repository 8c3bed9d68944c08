"""Attention by a small perceptron (Bahdanau et al. 2015): how well does each source position fit the decoder's state?

energy_s = v^T relu(W_k e_s + W_q q + b) + b_v over the source positions s, weights = softmax(energy), and
context = sum_s weights_s e_s.
W_k and W_q are the two halves of one linear map of [e_s; q]; the first half is the same at every step, so it is computed once.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from partwise.layers.tap import Tap, untouched
from partwise.layers.weights import Weights

Encoded = Float[Tensor, "*batch source_time hidden"]


def attend(
    weights: Weights,
    encoded: Encoded,
    keys: Encoded,
    query: Float[Tensor, "*batch hidden"],
    readable: Bool[Tensor, "*batch source_time"],
    t: int,
    tap: Tap = untouched,
) -> tuple[Float[Tensor, "*batch hidden"], Float[Tensor, "*batch source_time"]]:
    """Context and attention weights of one decoder step; positions that are not `readable` (padding) get weight 0."""
    fit = torch.relu(keys + weights.linear("attention.query", query).unsqueeze(-2))
    energy = weights.linear("attention.energy", fit).squeeze(-1).masked_fill(~readable, -torch.inf)
    attention = tap("attention.weights", t, torch.softmax(energy, dim=-1))
    context = (attention.unsqueeze(-2) @ encoded).squeeze(-2)
    return tap("attention.context", t, context), attention
