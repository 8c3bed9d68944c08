"""A language model: an embedding, a stack of equal recurrent layers, and a linear map to the scores of the next word.

At each step the layers read the word's vector from the bottom up; the top layer's hidden state is scored against every word.
With `tied`, the rows of the embedding are those of the output map, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from partwise.errors import InputError, unknown
from partwise.layers import initialise, recurrence
from partwise.layers.initialise import Parameter
from partwise.layers.tap import Tap, begin, untouched
from partwise.layers.weights import Weights

States = tuple[tuple[Tensor, ...], ...]  # of each layer: (hidden, cell), or (hidden,)
_EXAMPLE_RANGE = 0.1  # embedding and output map, as in PyTorch's own example of a word language model


@dataclass(frozen=True)
class Said:
    """Scores (logits) of the word after each word read, and the state after the last."""

    logits: Float[Tensor, "*batch time word"]
    state: States


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """Sizes of a language model."""

    words: int
    embedding: int = 200
    hidden: int = 200
    layers: int = 1
    cell: str = "lstm"
    tied: bool = False

    def __post_init__(self) -> None:
        if self.cell not in recurrence.GATES:
            raise unknown("cell", self.cell, recurrence.GATES)
        if self.tied and self.embedding != self.hidden:
            raise InputError(
                f"tied needs an embedding as wide as the hidden state; found embedding {self.embedding}, hidden {self.hidden}"
            )

    def parameters(self) -> dict[str, Parameter]:
        """As PyTorch's example draws them: recurrent layers by their own rule, both ends from U(-.1, .1), no output bias."""
        gates = recurrence.GATES[self.cell]
        own = {"embedding.weight": Parameter((self.words, self.embedding), _EXAMPLE_RANGE)}
        for layer in range(self.layers):
            cell = initialise.recurrent_cell(gates, self.hidden if layer else self.embedding, self.hidden)
            own |= {f"layer{layer}.{name}": parameter for name, parameter in cell.items()}
        if not self.tied:
            own["output.weight"] = Parameter((self.words, self.hidden), _EXAMPLE_RANGE)
        return own | {"output.bias": Parameter((self.words,), 0.0)}

    def shared(self) -> dict[str, str]:
        """Parameters that are others by another name."""
        return {"output.weight": "embedding.weight"} if self.tied else {}

    def sites(self) -> tuple[str, ...]:
        inside = [f"layer{layer}.{site}" for layer in range(self.layers) for site in recurrence.SITES[self.cell]]
        return ("embedding", *inside, "logits")

    def start(self, like: Float[Tensor, ...], rows: tuple[int, ...]) -> States:
        """The state before the first word: zero; `rows` are all dimensions but the last."""
        zero = like.new_zeros(*rows, self.hidden)
        return ((zero,) * (2 if self.cell == "lstm" else 1),) * self.layers

    def forward(
        self,
        weights: Weights,
        ids: Int[Tensor, "*batch time"],
        state: States | None = None,
        tap: Tap = untouched,
    ) -> Said:
        """Read `ids` from `state` (default: zero)."""
        begin(tap, self.sites())
        x = weights.embedding("embedding", ids).movedim(-2, 0)
        if tap is not untouched:
            x = torch.stack([tap("embedding", t, word) for t, word in enumerate(x)])
        state = state or self.start(x, tuple(x.shape[1:-1]))
        lasts = []
        for layer, before in enumerate(state):
            x, last = self._read(weights, f"layer{layer}", x, before, tap)
            lasts.append(last)
        logits = weights.linear("output", x.movedim(0, -2))
        if tap is not untouched:
            logits = torch.stack([tap("logits", t, logits[..., t, :]) for t in range(logits.shape[-2])], dim=-2)
        return Said(logits, tuple(lasts))

    def _read(self, weights: Weights, name: str, x: Tensor, state: tuple[Tensor, ...], tap: Tap) -> tuple[Tensor, Any]:
        """One layer over all steps. Time comes first: a step's slice is then one block of memory, as fast cells need it."""
        from_input = weights.linear(f"{name}.input", x.movedim(0, -2)).movedim(-2, 0).contiguous()
        outputs = []
        for t, given in enumerate(from_input.unbind(0)):
            state = recurrence.step(self.cell, weights, name, given, state, t, tap)
            outputs.append(state[0])
        return torch.stack(outputs), state


ARCHITECTURE = LanguageModel
