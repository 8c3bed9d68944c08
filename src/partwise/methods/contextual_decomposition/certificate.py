"""The certificate of a decomposition: what it is compared with, and what counts as too far from it.

That both parts sum to the model's values holds by construction, so a sum alone proves book-keeping. Of some rows (evenly spaced
ones, and those with the largest word vectors, where rounding is worst), the sum is therefore compared with PyTorch's fused
recurrence, and both parts with the reference equations, each side computed on its own.
"""

from __future__ import annotations

import warnings

import torch
from jaxtyping import Float
from torch import Tensor

from partwise.layers import fused
from partwise.methods._sentences import Sentences
from partwise.methods.contextual_decomposition.equations import decompose
from partwise.methods.contextual_decomposition.phrase import credited_mask
from partwise.methods.contextual_decomposition.splits import Split
from partwise.methods.contextual_decomposition.variants import Variant
from partwise.twins.readable import Readable

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
_CHECKED = 4  # rows of each kind

States = Float[Tensor, "*member sentence time unit"]
Errors = Float[Tensor, "*member"]


def largest_error(model: Readable, kind: Variant, read: Sentences, inside: Tensor, split: Split) -> Errors:
    """The largest relative error over some rows, from first to last: of both parts' sum, and of each part computed anew."""
    rows = _rows(read)
    few, mask = read.rows(rows), inside[rows]
    again = decompose(model, kind, few, mask, credited_mask(mask, kind.bias_product))
    whole = hidden_states(model, few)
    found = Split(*(side[..., rows, :, :] for side in split))
    pairs = [(again.relevant + again.irrelevant, whole), (found.relevant + found.irrelevant, whole)]
    pairs += [(side, other) for side, other in zip(found, again, strict=True)]
    return torch.stack([relative_error(few, one, other, whole) for one, other in pairs]).amax(dim=0)


def _rows(read: Sentences) -> Tensor:
    """Evenly spaced rows, and as many with the largest word vectors."""
    count = len(read.lengths)
    even = torch.linspace(0, count - 1, min(_CHECKED, count), device=read.lengths.device).round().long()
    sizes = torch.where(read.inside.unsqueeze(-1), read.vectors, 0.0).abs().amax(dim=(-2, -1))
    largest = sizes.reshape(-1, count).amax(dim=0).topk(min(_CHECKED, count)).indices
    return torch.cat((even, largest)).unique()


def relative_error(read: Sentences, one: States, other: States, whole: States) -> Errors:
    """The largest distance of two hidden states inside a sentence, relative to the longest hidden state of that sentence."""
    real = read.inside.unsqueeze(-1)
    distance = torch.where(real, one - other, 0.0).norm(dim=-1).amax(dim=-1)
    longest = torch.where(real, whole, 0.0).norm(dim=-1).amax(dim=-1)
    return (distance / longest.clamp_min(torch.finfo(whole.dtype).tiny)).amax(dim=-1)  # a state of zeros must be met exactly


def hidden_states(model: Readable, read: Sentences) -> Float[Tensor, "*member sentence time unit"]:
    """What PyTorch's fused recurrence makes of the same weights."""
    rows = len(read.lengths)
    if model.members is None:
        start = [[part.expand(rows, -1).contiguous() for part in layer] for layer in read.start]
        return fused.read(model.cell, model.layers, model.parameters, read.vectors, start)[0]
    found = []
    for row, single in enumerate(model.of_members()):
        start = [[part[row].expand(rows, -1).contiguous() for part in layer] for layer in read.start]
        found.append(fused.read(model.cell, model.layers, single.parameters, read.vectors[row], start)[0])
    return torch.stack(found)


def warn_above_tolerance(errors: Errors, dtype: torch.dtype) -> None:
    error = float(errors.max())
    if not error <= TOLERANCE[dtype]:
        warnings.warn(
            f"the decomposition's certificate is {error:.1e}, above {TOLERANCE[dtype]:.0e}: its parts are not what the "
            f"equations say{'' if dtype == torch.float64 else '; try dtype=torch.float64'}",
            stacklevel=3,
        )
