"""Adam over the rows of a population's store, with a gradient clip, frozen parts, and a stop for members that diverge.

1. Set the gradients of frozen parts to zero: they count nothing in the norm, and since a frozen part has no momentum either,
   Adam's update of it is zero to the bit.
2. A member whose gradient is not finite stops here: no update now or later; the others go on.
3. Divide each member's gradient so that its norm is at most `clip`.
4. Adam (Kingma and Ba 2015, algorithm 1) by PyTorch's fused kernel, one row a member. The kernel divides by `grad_scale` and
   skips a row whose `found_inf` is 1 (both made for mixed precision) without our looking at a value, as a captured CUDA
   graph needs.

The fused kernel silently needs gradients laid out like their parameters, which rows of one store are.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Store = Float[Tensor, "member parameter"]
Mask = Bool[Tensor, "member parameter"]
PerMember = Float[Tensor, " member"]

BETAS, EPSILON = (0.9, 0.999), 1e-8


class MemberAdam:
    """The optimiser of a population. `moments` is everything it needs to go on: (first, second, steps)."""

    def __init__(self, store: Store, gradients: Store, learning_rate: float, clip: float, frozen: Mask | None = None) -> None:
        self.store, self.gradients, self.learning_rate, self.clip = store, gradients, learning_rate, clip
        self.frozen = frozen
        self.alive: Bool[Tensor, " member"] = torch.ones(len(store), dtype=torch.bool, device=store.device)
        self.moments = {
            "first": torch.zeros_like(store),
            "second": torch.zeros_like(store),
            "steps": torch.zeros(len(store), dtype=torch.float32, device=store.device),
        }
        self._rows = list(zip(store, gradients, *self.moments.values(), strict=True))

    def load(self, moments: dict[str, Tensor], alive: Bool[Tensor, " member"]) -> None:
        """Go on from saved moments; frozen parts get none."""
        for name, values in moments.items():
            self.moments[name].copy_(values)
        if self.frozen is not None:
            for name in ("first", "second"):
                self.moments[name].masked_fill_(self.frozen, 0.0)
        self.alive.copy_(alive)

    @torch.no_grad()
    def step(self) -> PerMember:
        """One update from `gradients`; returns each member's gradient norm before the clip."""
        if self.frozen is not None:
            self.gradients.masked_fill_(self.frozen, 0.0)
        norms = torch.linalg.vector_norm(self.gradients, dim=1)
        self.alive &= torch.isfinite(norms)
        self.moments["steps"] += self.alive
        stopped = (~self.alive).float()
        for row, divisor, stop in zip(self._rows, self._divisors(norms), stopped, strict=True):
            self._update(row, divisor, stop)
        return norms

    def _divisors(self, norms: PerMember) -> Sequence[Tensor | None]:
        """What each gradient is divided by; None for one that is short enough, where we may look (dividing costs a pass)."""
        divisors = ((norms + 1e-6) / self.clip).clamp_min(1.0).float()
        if self.store.is_cuda:
            return list(divisors)
        return [divisor if value > 1 else None for divisor, value in zip(divisors, divisors.tolist(), strict=True)]

    def _update(self, row: tuple[Tensor, ...], divisor: Tensor | None, stopped: Tensor) -> None:
        weights, gradient, first, second, steps = row
        torch._fused_adam_(
            [weights], [gradient], [first], [second], [], [steps],
            lr=self.learning_rate, beta1=BETAS[0], beta2=BETAS[1], eps=EPSILON, weight_decay=0.0,
            amsgrad=False, maximize=False, grad_scale=divisor, found_inf=stopped,
        )  # fmt: skip
