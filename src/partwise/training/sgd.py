"""Plain gradient descent over the rows of a population's store, each member with its own rate, momentum and weight decay.

1. Set the gradients of frozen parts to zero; a member whose gradient is not finite stops here, the others go on.
2. Scale each member's gradient so that its norm is at most `clip`.
3. PyTorch's rule: g + decay * w goes into the momentum b = momentum * b + g, and w moves by -rate * b. Where no member has
   either, the two passes over memory that they cost are left out.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Store = Float[Tensor, "member parameter"]
Mask = Bool[Tensor, "member parameter"]
PerMember = Float[Tensor, " member"]


class MemberSgd:
    """The optimiser of a population. `moments` is everything it needs to go on: the rates of now, and momentum if any."""

    def __init__(
        self,
        store: Store,
        gradients: Store,
        learning_rate: PerMember,
        clip: float,
        frozen: Mask | None = None,
        *,
        momentum: PerMember | None = None,
        weight_decay: PerMember | None = None,
    ) -> None:
        self.store, self.gradients, self.clip, self.frozen = store, gradients, clip, frozen
        self.alive: Tensor = torch.ones(len(store), dtype=torch.bool, device=store.device)
        self.moments: dict[str, Tensor] = {"rate": learning_rate.to(store).clone()}
        self._momentum = _column(momentum, store)
        self._decay = _column(weight_decay, store)
        if self._momentum is not None:
            self.moments["velocity"] = torch.zeros_like(store)

    def load(self, moments: dict[str, Tensor], alive: Bool[Tensor, " member"]) -> None:
        for name, values in moments.items():
            self.moments[name].copy_(values)
        self.alive.copy_(alive)

    @torch.no_grad()
    def step(self) -> PerMember:
        """One update from `gradients`; returns each member's gradient norm before the clip."""
        gradients = self.gradients
        if self.frozen is not None:
            gradients.masked_fill_(self.frozen, 0.0)
        norms = torch.linalg.vector_norm(gradients, dim=1)
        self.alive &= torch.isfinite(norms)
        gradients.masked_fill_(~self.alive.unsqueeze(1), 0.0)
        scale = (self.clip / (norms + 1e-6)).clamp_max(1.0).nan_to_num(0.0)
        rate = self.moments["rate"] * self.alive
        if self._momentum is None and self._decay is None:
            self.store.addcmul_(gradients, -(rate * scale).unsqueeze(1))
            return norms
        gradients.mul_(scale.unsqueeze(1))
        if self._decay is not None:
            gradients.addcmul_(self.store, self._decay)
            if self.frozen is not None:
                gradients.masked_fill_(self.frozen, 0.0)
        if self._momentum is not None:
            gradients = self.moments["velocity"].mul_(self._momentum).add_(gradients)
        self.store.addcmul_(gradients, -rate.unsqueeze(1))
        return norms


def _column(values: PerMember | None, store: Store) -> Float[Tensor, "member 1"] | None:
    """One number a member, ready to multiply rows; None where all are zero."""
    return None if values is None or not values.any() else values.to(store).unsqueeze(1)
