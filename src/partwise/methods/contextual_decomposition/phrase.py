"""Which words a phrase holds: two bounds, two bounds a sentence, or any set of positions."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from partwise.errors import InputError

Mask = Bool[Tensor, "sentence time"]


def phrase_mask(phrase: Any, lengths: Int[Tensor, " sentence"], time: int) -> Mask:
    """True at the words of the phrase. `phrase` is (start, stop) with stop exclusive, each a number or (batch,), or a mask."""
    rows, device = len(lengths), lengths.device
    if isinstance(phrase, Tensor) or (hasattr(phrase, "dtype") and hasattr(phrase, "shape")):
        mask = torch.as_tensor(phrase, device=device)
        if mask.dtype != torch.bool or mask.shape != (rows, time):
            raise InputError(
                f"phrase is a {mask.dtype} tensor of shape {tuple(mask.shape)}; give (start, stop), "
                f"or a bool mask of shape ({rows}, {time})"
            )
    else:
        start, stop = _bounds(phrase, rows, device)
        wrong = (start < 0) | (stop > lengths) | (start >= stop)
        if wrong.any():
            row = int(wrong.nonzero()[0])
            raise InputError(
                f"phrase ({int(start[row])}, {int(stop[row])}) of sentence {row} is empty or outside its {int(lengths[row])} "
                "words; start counts from 0 and stop is exclusive"
            )
        positions = torch.arange(time, device=device)
        mask = (positions >= start[:, None]) & (positions < stop[:, None])
    beyond = mask & (torch.arange(time, device=device) >= lengths[:, None])
    if beyond.any():
        row, place = (int(value) for value in beyond.nonzero()[0])
        raise InputError(f"phrase holds position {place} of sentence {row}, which has {int(lengths[row])} words")
    if not mask.any(dim=1).all():
        row = int((~mask.any(dim=1)).nonzero()[0])
        raise InputError(f"phrase holds no word of sentence {row}; it must hold at least one")
    return mask


def credited_mask(inside: Mask, rule: str) -> Mask:
    """Where the product of two biases counts as the phrase's: in it, in it but for its last word, always, or never."""
    if rule == "inside":
        return inside
    if rule == "inside-but-last":
        later = inside.flip(1).cumsum(dim=1).flip(1) - inside.long()
        return inside & (later > 0)
    return torch.full_like(inside, rule == "always")


def _bounds(phrase: Any, rows: int, device: torch.device) -> tuple[Tensor, Tensor]:
    try:
        start, stop = (torch.as_tensor(bound, device=device) for bound in phrase)
    except (TypeError, ValueError):
        raise InputError(f"phrase is {phrase!r}; give (start, stop), or a bool mask (batch, time)") from None
    for bound in (start, stop):
        if bound.dtype in (torch.bool,) or bound.is_floating_point() or bound.shape not in ((), (rows,)):
            raise InputError(
                f"phrase has a bound of shape {tuple(bound.shape)} and type {bound.dtype}; give whole numbers, "
                f"one or one for each of the {rows} sentences"
            )
    return start.expand(rows), stop.expand(rows)
