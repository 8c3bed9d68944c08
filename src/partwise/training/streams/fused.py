"""One member at a time through PyTorch's own fused recurrence: the fastest way on a CPU (measured: `benchmarks`), and on any
device for one large model. Numbers equal the stacked way to rounding."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from partwise.models.language_model import LanguageModel, States


def scores(
    architecture: LanguageModel, parameters: Mapping[str, Tensor], ids: Int[Tensor, "stream time"], state: States
) -> tuple[Float[Tensor, "stream time word"], States]:
    """The forward pass of `LanguageModel` for one member, by `torch.lstm` or `torch.gru`."""
    x = functional.embedding(ids, parameters["embedding.weight"])
    flat = [parameters[f"layer{layer}.{name}"] for layer in range(architecture.layers) for name in _ORDER]
    packed = [torch.stack(parts) for parts in zip(*state, strict=True)]
    layers, learning = architecture.layers, torch.is_grad_enabled()  # biases, no dropout, one direction, batch first
    if architecture.cell == "lstm":
        x, *lasts = torch.lstm(x, packed, flat, True, layers, 0.0, learning, False, True)
    else:
        x, *lasts = torch.gru(x, packed[0], flat, True, layers, 0.0, learning, False, True)
    new = tuple(tuple(part[layer] for part in lasts) for layer in range(architecture.layers))
    return functional.linear(x, parameters["output.weight"], parameters["output.bias"]), new


_ORDER = ("input.weight", "recurrent.weight", "input.bias", "recurrent.bias")


class Leaves:
    """One member's parameters as autograd leaves whose gradients are rows of the gradient store."""

    def __init__(self, parameters: Mapping[str, Tensor], gradients: Mapping[str, Tensor], shared: Mapping[str, str]) -> None:
        self.parameters = {name: value.detach().requires_grad_() for name, value in parameters.items() if name not in shared}
        for name, leaf in self.parameters.items():
            leaf.grad = gradients[name]
        self.parameters |= {name: self.parameters[other] for name, other in shared.items()}
