"""PyTorch's own fused recurrences over named parameters: what every open path is compared with, and what a CPU does fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

States = tuple[tuple[Tensor, ...], ...]  # of each layer: (hidden, cell), or (hidden,)
_ORDER = ("input.weight", "recurrent.weight", "input.bias", "recurrent.bias")


def read(
    cell: str,
    layers: int,
    parameters: Mapping[str, Tensor],
    x: Float[Tensor, "row time width"],
    state: Sequence[Sequence[Float[Tensor, "row hidden"]]],
) -> tuple[Float[Tensor, "row time hidden"], States]:
    """The top layer's hidden states at every step, and every layer's last state, by `torch.lstm` or `torch.gru`."""
    names = [f"layer{layer}.{name}" for layer in range(layers) for name in _ORDER]
    flat = [parameters[name] for name in names if name in parameters]
    biased, learning = len(flat) == len(names), torch.is_grad_enabled()
    packed = [torch.stack(parts) for parts in zip(*state, strict=True)]
    if cell == "lstm":
        x, *lasts = torch.lstm(x, packed, flat, biased, layers, 0.0, learning, False, True)
    else:
        x, *lasts = torch.gru(x, packed[0], flat, biased, layers, 0.0, learning, False, True)
    return x, tuple(tuple(part[layer] for part in lasts) for layer in range(layers))
