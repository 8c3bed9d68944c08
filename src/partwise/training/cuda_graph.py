"""A training step as one CUDA graph: launch overhead is paid once, whatever the number of members.

1. Warm up on a side stream (kernels compile, the allocator settles), then put every tensor back as it was.
2. Capture one step that reads its inputs from fixed buffers.
3. Each call copies the inputs into the buffers and replays.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from partwise.training.step import TrainingStep

_WARM_UP = 3


class GraphedStep:
    """Wraps a `TrainingStep`; called like it, with the same results to float tolerance."""

    def __init__(self, step: TrainingStep, batch_size: int) -> None:
        members, device = len(step.population), step.population.store.device
        self._step = step  # the graph knows addresses only: what it reads must outlive it
        self.totals = step.totals
        self._indices = torch.zeros(members, batch_size, dtype=torch.int64, device=device)
        self._forced = torch.zeros(members, dtype=torch.bool, device=device)
        optimiser = step.optimiser
        touched = [step.population.store, optimiser.gradients, *optimiser.moments.values(), optimiser.alive, step.totals]
        before = [tensor.clone() for tensor in touched]

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP):
                step(self._indices, self._forced)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            step(self._indices, self._forced)
        for tensor, values in zip(touched, before, strict=True):
            tensor.copy_(values)

    def __call__(self, indices: Int[Tensor, "member batch"], forced: Bool[Tensor, " member"]) -> None:
        self._indices.copy_(indices)
        self._forced.copy_(forced)
        self._graph.replay()
