"""Contextual decomposition: what a phrase contributes to a recurrent model's hidden states and scores, apart from the rest.

Murdoch et al. (ICLR 2018) split every value of an LSTM into a part that stems from the phrase (here: relevant) and the rest
(irrelevant); the two sum to the value. All layers, all steps, whole batches of (sentence, phrase) pairs in one pass, for
LSTMs and GRUs.
A word on names: Murdoch et al. call the relevant part beta, Saphra and Lopez call it gamma; here it is always `relevant`.

1. Read and check sentences and phrases; find the sentences that occur more than once.
2. Decompose in chunks that fit the budget: variants of the Murdoch family by `fast`, all others by `equations`, labelled
   parts by `shapley`.
3. Certificate: some rows once more by `equations`, both sides on their own, against the model's hidden states and step 2.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from partwise.errors import InputError
from partwise.layers.precision import exact_products
from partwise.methods._sentences import Sentences, bytes_of, sentences
from partwise.methods.contextual_decomposition.certificate import (
    hidden_states,
    largest_error,
    relative_error,
    warn_above_tolerance,
)
from partwise.methods.contextual_decomposition.equations import decompose
from partwise.methods.contextual_decomposition.fast import decompose_fast, is_fast, read_whole
from partwise.methods.contextual_decomposition.phrase import credited_mask, phrase_mask
from partwise.methods.contextual_decomposition.result import Decomposition
from partwise.methods.contextual_decomposition.shapley import MOST_PARTS, decompose_parts
from partwise.methods.contextual_decomposition.splits import Split
from partwise.methods.contextual_decomposition.variants import VARIANTS, Variant, variant_of
from partwise.twins.readable import Readable, readable

__all__ = ["VARIANTS", "Decomposition", "Variant", "contextual_decomposition"]

_COPIES = 40  # values of a unit at work at once, per row: measured, rounded up
_KEPT_A_STEP = 20  # and those that stay for every step of a sentence read whole


@torch.no_grad()
def contextual_decomposition(
    model: Any,
    ids: Any,
    phrase: Any = None,
    *,
    variant: str | Variant = "murdoch2018",
    parts: Any = None,
    lengths: Any = None,
    init: Any = "zero",
    dtype: torch.dtype | None = None,
    budget: str | int = "1GB",
) -> Decomposition:
    """Split the model's values on `ids` (batch, time) into what `phrase` contributes and what everything else does.

    `model` is what `pw.wrap` returns, or a population of language models (the result then has a dimension `member`, and each
    member may read sentences of its own: `ids` (member, batch, time)).
    `phrase` is (start, stop), stop exclusive, two numbers or two (batch,) arrays, or a bool mask (batch, time).
    `variant`: see `variants`; "shapley" shares every non-linearity out between the phrase and the rest, or, in place of a
    phrase, between up to 8 `parts`: whole numbers (batch, time) from 0.
    `init` is "zero", word ids to read beforehand, or (h, c).
    `budget` bounds the memory at work, beyond the result itself.
    """
    with exact_products():
        read_model = readable(model, "contextual_decomposition", dtype)
        read = sentences(read_model, ids, lengths, init)
        memory = bytes_of(budget)
        if parts is not None or variant == "shapley":
            return _by_shapley(read_model, read, phrase, parts, variant, memory)
        kind = variant_of(variant)
        inside = phrase_mask(phrase, read.lengths, read.time)
        split = _split(read_model, kind, read, ids, inside, memory)
        error = largest_error(read_model, kind, read, inside, split)
    result = Decomposition(read_model, kind.name, read.lengths, split.relevant, split.irrelevant, error, memory)
    warn_above_tolerance(error, read_model.dtype)
    return result


def _split(model: Readable, kind: Variant, read: Sentences, ids: Any, inside: Tensor, memory: int) -> Split:
    credited = credited_mask(inside, kind.bias_product)
    chunks = _chunks(model, read, memory, 1)
    if not is_fast(kind):
        found = [decompose(model, kind, read.rows(rows), inside[rows], credited[rows]) for rows in chunks]
        return Split(*(torch.cat(sides, dim=-3) for sides in zip(*found, strict=True)))
    distinct, sentence = _distinct(read, ids)
    relevant, irrelevant = (read.vectors.new_zeros(*model.lead, *inside.shape, model.hidden) for _ in range(2))
    for rows in chunks:
        here, which = sentence[rows].unique(return_inverse=True)
        part = read.rows(distinct[here])
        split = decompose_fast(model, kind, part, read_whole(model, part), which, inside[rows], credited[rows])
        relevant[..., rows, :, :], irrelevant[..., rows, :, :] = split
    return Split(relevant, irrelevant)


def _by_shapley(model: Readable, read: Sentences, phrase: Any, parts: Any, variant: Any, memory: int) -> Decomposition:
    if variant != "shapley":
        raise InputError(f'parts are shared out by variant "shapley"; found variant {variant!r}')
    if (parts is None) == (phrase is None):
        raise InputError("give either a phrase or parts, not both")
    if parts is None:
        labels, count = (~phrase_mask(phrase, read.lengths, read.time)).long(), 2
    else:
        labels, count = _labels(parts, read)
    found = [
        decompose_parts(model, read.rows(rows), labels[rows], count) for rows in _chunks(model, read, memory, 2 ** (count + 1))
    ]
    shares = torch.cat(found, dim=-3)
    errors = []
    for rows in _chunks(model, read, memory, 1):
        few, whole = read.rows(rows), hidden_states(model, read.rows(rows))
        errors.append(relative_error(few, shares[..., rows, :, :].sum(dim=0), whole, whole))
    error = torch.stack(errors).amax(dim=0)
    warn_above_tolerance(error, model.dtype)
    rest = shares[1:].sum(dim=0)
    return Decomposition(model, "shapley", read.lengths, shares[0], rest, error, memory, shares)


def _labels(parts: Any, read: Sentences) -> tuple[Int[Tensor, "sentence time"], int]:
    labels = torch.as_tensor(parts, device=read.lengths.device)
    wanted = (len(read.lengths), read.time)
    if labels.is_floating_point() or labels.dtype == torch.bool or labels.shape != wanted:
        raise InputError(f"parts has shape {tuple(labels.shape)} and type {labels.dtype}; give whole numbers of shape {wanted}")
    count = int(labels.max()) + 1
    if labels.min() < 0 or count > MOST_PARTS:
        raise InputError(
            f"parts holds {int(labels.min())} to {count - 1}; number the parts from 0, at most {MOST_PARTS} of them"
        )
    return labels.long(), count


def _chunks(model: Readable, read: Sentences, memory: int, coalitions: int) -> list[Tensor]:
    """Row numbers, as many at a time as the budget holds."""
    members = max(1, *model.lead, 1)
    a_step = model.width + _KEPT_A_STEP * model.layers * model.hidden
    a_row = members * model.dtype.itemsize * (_COPIES * coalitions * model.hidden + a_step * read.time)
    rows = memory // a_row
    if not rows:
        raise InputError(f"budget {memory:,} bytes is too small for one sentence; it needs at least {a_row:,}")
    return list(torch.arange(len(read.lengths), device=read.lengths.device).split(rows))


def _distinct(read: Sentences, ids: Any) -> tuple[Tensor, Tensor]:
    """The first row of each distinct sentence, and which of them each row reads."""
    rows = torch.arange(len(read.lengths), device=read.lengths.device)
    words = torch.as_tensor(ids, device=rows.device)
    if words.is_floating_point() or any(part.shape[-2] > 1 for layer in read.start for part in layer):
        return rows, rows
    _, sentence = words.movedim(-2, 0).flatten(1).unique(dim=0, return_inverse=True)
    first = torch.full_like(rows[: int(sentence.max()) + 1], len(rows)).scatter_reduce(0, sentence, rows, "amin")
    return first, sentence
