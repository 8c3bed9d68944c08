"""A training step as one CUDA graph: launch overhead is paid once, whatever the number of members.

1. Warm up on a side stream (kernels load, the allocator settles), then put every tensor back as it was.
2. Capture one step that reads its inputs from fixed buffers.
3. Each call copies the inputs into the buffers and replays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_WARM_UP = 3


class Graphed:
    """Called like the step it wraps, with the same results to float tolerance.

    `inputs` have the shape of every later call's, `touched` are all tensors that a step changes.
    """

    def __init__(self, step: Callable[..., None], inputs: Sequence[Tensor], touched: Sequence[Tensor]) -> None:
        self._step = step  # the graph knows addresses only: what it reads must outlive it
        self._inputs = [tensor.clone() for tensor in inputs]
        before = [tensor.clone() for tensor in touched]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP):
                step(*self._inputs)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            step(*self._inputs)
        for tensor, values in zip(touched, before, strict=True):
            tensor.copy_(values)

    def __call__(self, *inputs: Tensor) -> None:
        for buffer, values in zip(self._inputs, inputs, strict=True):
            buffer.copy_(values)
        self._graph.replay()
