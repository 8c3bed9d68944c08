"""Phrase replacement: how much a score changes when a phrase is exchanged for others. What an attribution claims, tried out.

1. Read every sentence, and every variant of it in which other words stand where the phrase stood.
2. The change is the score of the original less the mean score of its variants; scores are logits less the mean logit of all
   words, since softmax does not see what all have in common.
3. `agreement` correlates the changes with what an attribution said the phrase contributes, over sentences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from partwise.errors import InputError
from partwise.layers.precision import exact_products
from partwise.methods._sentences import check_words, read_through, sentences
from partwise.methods.contextual_decomposition.phrase import phrase_mask
from partwise.twins.readable import Readable, readable


@torch.no_grad()
def phrase_replacement(
    model: Any,
    ids: Int[Tensor, "*member sentence time"],
    phrase: Any,
    alternatives: Int[Tensor, ...],
    token: Any,
    *,
    lengths: Any = None,
    init: Any = "zero",
    dtype: torch.dtype | None = None,
) -> xr.Dataset:
    """`change` of the score of `token` (one, or one a sentence) at the last word, dims (member, sentence).

    Of `alternatives`, other sentences (draw, sentence, time), only what stands in the phrase is used.
    """
    with exact_products():
        known = readable(model, "phrase_replacement", dtype)
        read = sentences(known, ids, lengths, init)
        inside = phrase_mask(phrase, read.lengths, read.time)
        others = torch.as_tensor(alternatives, device=inside.device)
        if others.dim() != 3 or others.shape[1:] != inside.shape or others.is_floating_point():
            raise InputError(
                f"alternatives has shape {tuple(others.shape)}; give word ids (draw, {inside.shape[0]}, {inside.shape[1]})"
            )
        check_words(others[:, inside], known.words or 0, "alternatives")
        wanted = torch.as_tensor(token, device=inside.device).expand(len(inside))
        check_words(wanted, known.outputs or 0, "token")
        original = _score(known, torch.as_tensor(ids, device=inside.device), read.lengths, init, wanted)
        changed = [
            _score(known, torch.where(inside, other, torch.as_tensor(ids, device=inside.device)), read.lengths, init, wanted)
            for other in others
        ]
        change = original - torch.stack(changed).mean(dim=0)
    dims = ("sentence",) if known.members is None else ("member", "sentence")
    coords = {} if known.members is None else {"member": list(known.members)}
    arrays = {"change": (dims, change.cpu().numpy()), "original": (dims, original.cpu().numpy())}
    return xr.Dataset(arrays, coords, {"draws": len(others)})


def agreement(attributed: Float[np.ndarray, "*member sentence"], change: Float[np.ndarray, "*member sentence"]) -> np.ndarray:
    """Pearson's correlation over sentences, one number a member; NaN where either does not vary."""
    one, other = (values - values.mean(axis=-1, keepdims=True) for values in (attributed, change))
    spread = np.sqrt((one**2).sum(axis=-1) * (other**2).sum(axis=-1))
    return np.divide((one * other).sum(axis=-1), spread, out=np.full(spread.shape, np.nan), where=spread > 0)


def _score(model: Readable, ids: Tensor, lengths: Tensor, init: Any, wanted: Tensor) -> Float[Tensor, "*member sentence"]:
    """The centred logit of each sentence's token after its last word."""
    read = sentences(model, ids, lengths, init)
    x, _ = read_through(model, read.vectors, read.start)
    last = x[..., torch.arange(len(lengths), device=x.device), lengths - 1, :]
    scores = model.weights.linear("output", last)
    places = wanted.long().expand(scores.shape[:-1]).unsqueeze(-1)
    return scores.gather(-1, places).squeeze(-1) - scores.mean(dim=-1)
