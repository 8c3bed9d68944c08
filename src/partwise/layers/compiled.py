"""Equations compiled for CUDA: many small kernels become one, with nothing written twice.

Only pure functions of tensors are compiled, and only where a whole step is captured anyway, so that the compiler's own overhead
is paid once. A function that cannot be compiled whole raises; it never falls back in silence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

_SHAPES = 64  # populations of many sizes may pass through one process


@cache
def compiled(equations: Callable[..., Any]) -> Callable[..., Any]:
    """`equations`, compiled when it is first called; as they are where a run-time shape checker has been put around them."""
    if hasattr(equations, "__wrapped__"):
        return equations
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, _SHAPES)
    return torch.compile(equations, fullgraph=True)
