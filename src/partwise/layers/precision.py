"""Float32 proper: no tf32 on CUDA, no bfloat16 inside products on the CPU, while an analysis runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def exact_products() -> Iterator[None]:
    """Within the block products are as exact as their type; the caller's settings are restored afterwards."""
    backends: Any = torch.backends
    switches = (backends.cuda.matmul, backends.cudnn.rnn, backends.mkldnn.matmul, backends.mkldnn.rnn)
    before = [switch.fp32_precision for switch in switches]
    try:
        for switch in switches:
            switch.fp32_precision = "ieee"
        yield
    finally:
        for switch, precision in zip(switches, before, strict=True):
            switch.fp32_precision = precision
