"""What a sequence model is trained for: the task loss, and attentive guidance (Hupkes et al. 2019).

Both follow the published code: at each output step the mean over the rows that are not padding, then the SUM over
steps, the step that emits <eos> included. Guidance is the cross entropy between the wanted and the actual attention;
with a one-hot alignment that is -log of the attention on the right position.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

_LEAST_ATTENTION = 1e-20


def task_loss(
    logits: Float[Tensor, "*member row time word"],
    target: Int[Tensor, "*member row time"],
    counts: Bool[Tensor, "*member row time"],
) -> Float[Tensor, "*member"]:
    """Negative log-probability of the target words."""
    return _sum_of_step_means(surprise(logits, target), counts)


def surprise(
    logits: Float[Tensor, "*member row time word"], target: Int[Tensor, "*member row time"]
) -> Float[Tensor, "*member row time"]:
    """Minus the log-probability of each target word."""
    return -torch.log_softmax(logits, dim=-1).gather(-1, target.unsqueeze(-1)).squeeze(-1)


def guidance_loss(
    attention: Float[Tensor, "*member row time source_time"],
    alignment: Float[Tensor, "*member row time source_time"],
    counts: Bool[Tensor, "*member row time"],
) -> Float[Tensor, "*member"]:
    """Cross entropy of the attention against any wanted alignment; steps whose alignment is all zero are left out."""
    log_attention = attention.clamp_min(_LEAST_ATTENTION).log()
    cross_entropy = -(alignment * log_attention).sum(dim=-1)
    return _sum_of_step_means(cross_entropy, counts & (alignment.sum(dim=-1) > 0))


def _sum_of_step_means(loss: Tensor, counts: Tensor) -> Tensor:
    kept = torch.where(counts, loss, 0.0)
    return (kept.sum(dim=-2) / counts.sum(dim=-2).clamp_min(1)).sum(dim=-1)


def row_is_right(
    chosen: Int[Tensor, "*member row time"],
    target: Int[Tensor, "*member row time"],
    counts: Bool[Tensor, "*member row time"],
) -> Bool[Tensor, "*member row"]:
    """Sequence accuracy: every word of the target right, the copied input, the intermediate results and <eos> included."""
    return ((chosen == target) | ~counts).all(dim=-1)
