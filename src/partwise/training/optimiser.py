"""Adam over the rows of a population's store, with a gradient clip, frozen parts, and a stop for members that diverge.

1. Zero the gradients of frozen parts, so that they are no part of the norm.
2. A member whose gradient is not finite stops here: no update now or later; the others go on. (On CUDA, where a captured step
   cannot look at values, its weights become NaN instead, and it is found at the end of the epoch.)
3. Scale each member's gradient so that its norm is at most `clip`.
4. Adam, one row a member. Rows, gradients and moments are contiguous, which PyTorch's fused Adam silently needs.
5. Put frozen parts back to the very bits they had: momentum moves a parameter even when its gradient is zero.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Store = Float[Tensor, "member parameter"]


class MemberAdam:
    """The optimiser of a population. `moments` is everything it needs to go on: (first, second, steps)."""

    def __init__(
        self,
        store: Store,
        gradients: Store,
        learning_rate: float,
        clip: float,
        frozen: Bool[Tensor, "member parameter"] | None = None,
    ) -> None:
        self.store, self.gradients, self.clip = store, gradients, clip
        self.frozen = frozen
        self._kept = store.clone() if frozen is not None else None
        self.alive: Bool[Tensor, " member"] = torch.ones(len(store), dtype=torch.bool, device=store.device)
        self.moments = {
            "first": torch.zeros_like(store),
            "second": torch.zeros_like(store),
            "steps": torch.zeros(len(store), dtype=torch.float32, device=store.device),
        }
        self._rows = [torch.nn.Parameter(row) for row in store]
        self._adam = torch.optim.Adam(self._rows, lr=learning_rate, fused=True, capturable=store.is_cuda)
        for i, row in enumerate(self._rows):
            row.grad = gradients[i]
            self._adam.state[row] = {
                "exp_avg": self.moments["first"][i],
                "exp_avg_sq": self.moments["second"][i],
                "step": self.moments["steps"][i],
            }

    def load(self, moments: dict[str, Tensor], alive: Bool[Tensor, " member"]) -> None:
        """Go on from saved moments."""
        for name, values in moments.items():
            self.moments[name].copy_(values)
        self.alive.copy_(alive)
        self._stop_the_dead()

    @torch.no_grad()
    def step(self) -> Float[Tensor, " member"]:
        """One update from `gradients`; returns each member's gradient norm before the clip."""
        if self.frozen is not None:
            self.gradients.masked_fill_(self.frozen, 0.0)
        norms = torch.linalg.vector_norm(self.gradients, dim=1)
        if self.store.is_cuda:  # inside a captured graph nothing may depend on a value: always scale, look later
            scale = (self.clip / (norms + 1e-6)).clamp_max(1.0)
            self.gradients.mul_(torch.where(torch.isfinite(norms), scale, torch.nan).unsqueeze(1))
        else:
            self._stop_diverged(norms)
            self._scale_long(norms)
        self._adam.step()
        if self.frozen is not None and self._kept is not None:
            self.store.copy_(torch.where(self.frozen, self._kept, self.store))
        return norms

    def _scale_long(self, norms: Tensor) -> None:
        for i, norm in enumerate(norms.tolist()):
            if norm > self.clip:
                self.gradients[i] *= self.clip / (norm + 1e-6)

    def _stop_diverged(self, norms: Tensor) -> None:
        finite = torch.isfinite(norms)
        if not bool(finite.all()):
            self.alive &= finite
            self._stop_the_dead()

    def _stop_the_dead(self) -> None:
        for row, alive in zip(self._rows, self.alive.tolist(), strict=True):
            if not alive:
                row.grad = None
