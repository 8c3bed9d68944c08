"""Adam over the rows of a population's store, with a gradient clip, frozen parts, and a stop for members that diverge.

1. Leave the gradients of frozen parts out of the norm.
2. A member whose gradient is not finite stops here: no update now or later; the others go on.
3. Scale each member's gradient so that its norm is at most `clip`.
4. Adam, one row a member; frozen parts keep the very bits they had (momentum would move them even without a gradient).

`adam` and `row_norms` are the equations. On CUDA they are compiled, each to one pass over memory, and may stand in a captured
graph. On the CPU PyTorch's fused Adam does the same update; it silently needs contiguous gradients, which rows are.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from partwise.layers.compiled import compiled

Store = Float[Tensor, "member parameter"]
Mask = Bool[Tensor, "member parameter"]
PerMember = Float[Tensor, " member"]

BETAS, EPSILON = (0.9, 0.999), 1e-8


def row_norms(gradients: Store, frozen: Mask | None) -> PerMember:
    """Euclidean norm of each member's gradient, frozen parts left out."""
    free = gradients if frozen is None else torch.where(frozen, 0.0, gradients)
    return free.square().sum(dim=1).sqrt()


def adam(
    store: Store, gradients: Store, first: Store, second: Store, steps: PerMember, rate: float
) -> tuple[Store, Store, Store]:
    """One update (Kingma and Ba 2015, algorithm 1): new weights and moments; `steps` counts this update."""
    one, two = BETAS
    first = one * first + (1 - one) * gradients
    second = two * second + (1 - two) * gradients.square()
    mean = first / (1 - one**steps).unsqueeze(1)
    spread = (second / (1 - two**steps).unsqueeze(1)).sqrt()
    return store - rate * mean / (spread + EPSILON), first, second


def update_rows(
    store: Store,
    gradients: Store,
    moments: tuple[Store, Store, PerMember],
    norms: PerMember,
    alive: Bool[Tensor, " member"],
    frozen: Mask | None,
    rate: float,
    clip: float,
) -> None:
    """Steps 2 to 4 in place, for every row at once and without looking at a value (a captured graph cannot)."""
    first, second, steps = moments
    alive &= torch.isfinite(norms)
    steps += alive
    scale = (clip / (norms + 1e-6)).clamp_max(1.0)
    new_store, new_first, new_second = adam(store, gradients * scale.unsqueeze(1), first, second, steps, rate)
    moves = alive.unsqueeze(1) if frozen is None else alive.unsqueeze(1) & ~frozen
    store.copy_(torch.where(moves, new_store, store))
    first.copy_(torch.where(moves, new_first, first))
    second.copy_(torch.where(moves, new_second, second))


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
        if not store.is_cuda:
            self._use_fused()

    def _use_fused(self) -> None:
        self._kept = self.store.clone() if self.frozen is not None else None
        self._rows = [torch.nn.Parameter(row) for row in self.store]
        self._adam = torch.optim.Adam(self._rows, lr=self.learning_rate, betas=BETAS, eps=EPSILON, fused=True)
        for i, row in enumerate(self._rows):
            row.grad = self.gradients[i]
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
    def step(self) -> PerMember:
        """One update from `gradients`; returns each member's gradient norm before the clip."""
        if self.store.is_cuda:
            norms = compiled(row_norms)(self.gradients, self.frozen)
            moments = (self.moments["first"], self.moments["second"], self.moments["steps"])
            rest = (norms, self.alive, self.frozen, self.learning_rate, self.clip)
            compiled(update_rows)(self.store, self.gradients, moments, *rest)
            return norms
        return self._step_fused()

    def _step_fused(self) -> PerMember:
        if self.frozen is not None:
            self.gradients.masked_fill_(self.frozen, 0.0)
        norms = torch.linalg.vector_norm(self.gradients, dim=1)
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
        if self.store.is_cuda:  # `update_rows` looks at `alive` itself
            return
        for row, alive in zip(self._rows, self.alive.tolist(), strict=True):
            if not alive:
                row.grad = None
