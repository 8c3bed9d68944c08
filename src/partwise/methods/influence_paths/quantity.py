"""The quantity of interest: a number read off the last hidden state, whose influences are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from partwise.errors import InputError
from partwise.methods._sentences import check_words
from partwise.twins.readable import Readable, readable

Hidden = Float[Tensor, "sentence point hidden"]


@dataclass(frozen=True)
class Quantity:
    """`value` and its gradient at last hidden states."""

    function: Callable[[Hidden, Tensor], Float[Tensor, "sentence point"]]

    def value(self, hidden: Hidden, rows: Int[Tensor, " sentence"]) -> Float[Tensor, "sentence point"]:
        found = self.function(hidden, rows)
        if not isinstance(found, Tensor) or found.shape != hidden.shape[:2]:
            shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise InputError(
                f"contrast gave {shape} for hidden states {tuple(hidden.shape)}; it must give one number a sentence and point"
            )
        return found

    def gradient(self, hidden: Hidden, rows: Int[Tensor, " sentence"]) -> Hidden:
        with torch.enable_grad():
            leaf = hidden.detach().requires_grad_()
            (found,) = torch.autograd.grad(self.value(leaf, rows).sum(), leaf)
        return found


def quantity_of(model: Readable, contrast: Any, sentences: int) -> Quantity:
    """`contrast` is (right, wrong), each a word id, one a sentence, or several a sentence (their mean score); or a callable of
    the last hidden states (sentence, point, hidden)."""
    if callable(contrast):
        return Quantity(lambda hidden, _: contrast(hidden))
    if not isinstance(contrast, (tuple, list)) or len(contrast) != 2:
        raise InputError(f"contrast is {contrast!r}; give (right, wrong) word ids, or a callable of the last hidden state")
    weight = model.parameters.get("output.weight")
    if weight is None:
        raise InputError("the model was wrapped without head=, so words have no scores; wrap it with one nn.Linear")
    right, wrong = (_words(side, sentences, weight, name) for side, name in zip(contrast, ("right", "wrong"), strict=True))
    if right.shape == wrong.shape and (same := (right == wrong).all(dim=1)).any():
        row = int(same.nonzero()[0])
        raise InputError(
            f"contrast has the same word {int(right[row, 0])} on both sides (sentence {row}); give two different ones"
        )
    bias = model.parameters.get("output.bias")

    def score(hidden: Hidden, rows: Tensor) -> Float[Tensor, "sentence point"]:
        direction = weight[right[rows]].mean(dim=1) - weight[wrong[rows]].mean(dim=1)
        found = torch.einsum("sph,sh->sp", hidden, direction)
        if bias is not None:
            found = found + (bias[right[rows]].mean(dim=1) - bias[wrong[rows]].mean(dim=1)).unsqueeze(1)
        return found

    return Quantity(score)


def log_probability(model: Any, token: int) -> Callable[[Hidden], Float[Tensor, "sentence point"]]:
    """A quantity: the log-probability of one word, for `contrast=`. `model` is what `pw.wrap` returns."""
    known = readable(model, "log_probability")
    if known.members is not None:
        raise InputError("log_probability is a quantity of one model; give one member of the population at a time")
    if known.outputs is None:
        raise InputError("the model was wrapped without head=, so words have no scores; wrap it with one nn.Linear")
    weight, bias = known.parameters["output.weight"], known.parameters.get("output.bias")
    check_words(torch.as_tensor(token), len(weight), "token")

    def score(hidden: Hidden) -> Float[Tensor, "sentence point"]:
        logits = torch.nn.functional.linear(hidden, weight.to(hidden), None if bias is None else bias.to(hidden))
        return logits[..., token] - logits.logsumexp(dim=-1)

    return score


def _words(side: Any, sentences: int, weight: Tensor, name: str) -> Int[Tensor, "sentence word"]:
    words = torch.as_tensor(side, device=weight.device)
    if words.is_floating_point() or words.dtype == torch.bool:
        raise InputError(f"contrast has {words.dtype} on its {name} side; give word ids")
    check_words(words, len(weight), f"contrast ({name})")
    if words.dim() == 0:
        return words.view(1, 1).expand(sentences, 1)
    if words.shape[0] != sentences or words.dim() > 2:
        raise InputError(
            f"contrast has a {name} side of shape {tuple(words.shape)}; give one word, ({sentences},), or ({sentences}, words)"
        )
    return words.reshape(sentences, -1)
