"""One member at a time through PyTorch's own fused recurrence: the fastest way on a CPU (measured: `benchmarks`), and on any
device for one large model. Numbers equal the stacked way to rounding."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from partwise.layers import fused
from partwise.models.language_model import LanguageModel, States


def scores(
    architecture: LanguageModel, parameters: Mapping[str, Tensor], ids: Int[Tensor, "stream time"], state: States
) -> tuple[Float[Tensor, "stream time word"], States]:
    """The forward pass of `LanguageModel` for one member, by `torch.lstm` or `torch.gru`."""
    x = functional.embedding(ids, parameters["embedding.weight"])
    hidden, new = fused.read(architecture.cell, architecture.layers, parameters, x, state)
    return functional.linear(hidden, parameters["output.weight"], parameters["output.bias"]), new


class Leaves:
    """One member's parameters as autograd leaves whose gradients are rows of the gradient store."""

    def __init__(self, parameters: Mapping[str, Tensor], gradients: Mapping[str, Tensor], shared: Mapping[str, str]) -> None:
        self.parameters = {name: value.detach().requires_grad_() for name, value in parameters.items() if name not in shared}
        for name, leaf in self.parameters.items():
            leaf.grad = gradients[name]
        self.parameters |= {name: self.parameters[other] for name, other in shared.items()}
