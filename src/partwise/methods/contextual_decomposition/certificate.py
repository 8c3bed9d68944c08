"""The certificate of a decomposition: what it is compared with, and what counts as too far from it.

That both parts sum to the model's values holds by construction, so a sum alone proves book-keeping. Some rows are therefore
decomposed once more by the reference equations, both sides on their own, and compared with the model's hidden states and
with the result.
"""

from __future__ import annotations

import warnings

import torch
from jaxtyping import Float
from torch import Tensor

from partwise.methods._sentences import Sentences
from partwise.methods.contextual_decomposition.equations import decompose
from partwise.methods.contextual_decomposition.fast import read_whole
from partwise.methods.contextual_decomposition.phrase import credited_mask
from partwise.methods.contextual_decomposition.splits import Split
from partwise.methods.contextual_decomposition.variants import Variant
from partwise.twins.readable import Readable

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
_CHECKED = 8  # rows

States = Float[Tensor, "*member sentence time unit"]
Errors = Float[Tensor, "*member"]


def largest_error(model: Readable, kind: Variant, read: Sentences, inside: Tensor, split: Split) -> Errors:
    """The largest relative error over some rows, from first to last: of both parts' sum, and of each part computed anew."""
    rows = torch.linspace(0, len(inside) - 1, min(_CHECKED, len(inside)), device=inside.device).round().long().unique()
    few, mask = read.rows(rows), inside[rows]
    again = decompose(model, kind, few, mask, credited_mask(mask, kind.bias_product))
    whole = hidden_states(model, few)
    found = Split(*(side[..., rows, :, :] for side in split))
    pairs = [(again.relevant + again.irrelevant, whole), (found.relevant + found.irrelevant, whole)]
    pairs += [(side, other) for side, other in zip(found, again, strict=True)]
    return torch.stack([relative_error(few, one, other, whole) for one, other in pairs]).amax(dim=0)


def relative_error(read: Sentences, one: States, other: States, whole: States) -> Errors:
    """The largest distance of two hidden states inside a sentence, relative to the longest hidden state of that sentence."""
    real = read.inside.unsqueeze(-1)
    distance = torch.where(real, one - other, 0.0).norm(dim=-1).amax(dim=-1)
    longest = torch.where(real, whole, 0.0).norm(dim=-1).amax(dim=-1)
    return (distance / longest.clamp_min(torch.finfo(whole.dtype).tiny)).amax(dim=-1)  # a state of zeros must be met exactly


def hidden_states(model: Readable, read: Sentences) -> Tensor:
    """The model's own: from its fused module where there is one and it holds the same numbers, else from the open equations."""
    fused = model.fused
    if fused is None or fused.twins[0].is_cell or fused.parameters["layer0.recurrent.weight"].dtype != model.dtype:
        return torch.stack([known.state[0] for known in read_whole(model, read)[-1]], dim=-2)
    x, first = read.vectors, 0
    for twin in fused.twins:
        layers = read.start[first : first + twin.layers]
        start = [torch.stack(parts).expand(-1, len(x), -1).contiguous() for parts in zip(*layers, strict=True)]
        x = x if twin.module.batch_first else x.transpose(0, 1)
        x = twin.module(x, tuple(start) if model.cell == "lstm" else start[0])[0]
        x, first = x if twin.module.batch_first else x.transpose(0, 1), first + twin.layers
    return x


def warn_above_tolerance(errors: Errors, dtype: torch.dtype) -> None:
    error = float(errors.max())
    if not error <= TOLERANCE[dtype]:
        warnings.warn(
            f"the decomposition's certificate is {error:.1e}, above {TOLERANCE[dtype]:.0e}: its parts do not sum to the "
            "model's hidden states as they should; try dtype=torch.float64",
            stacklevel=3,
        )
