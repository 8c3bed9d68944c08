"""How exact products are: float32 proper while an analysis runs (no tf32 on CUDA, no bfloat16 inside products on the CPU); tf32
while a language model trains on CUDA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch


def exact_products() -> AbstractContextManager[None]:
    """Within the block products are as exact as their type; the caller's settings are restored afterwards."""
    return _precision("ieee", _EVERYWHERE)


def fast_products() -> AbstractContextManager[None]:
    """Within the block products of float32 on CUDA are made of tf32."""
    return _precision("tf32", _ON_CUDA)


@contextmanager
def _precision(wanted: str, switches: Sequence[Any]) -> Iterator[None]:
    before = [switch.fp32_precision for switch in switches]
    try:
        for switch in switches:
            switch.fp32_precision = wanted
        yield
    finally:
        for switch, precision in zip(switches, before, strict=True):
            switch.fp32_precision = precision


_backends: Any = torch.backends
_ON_CUDA = (_backends.cuda.matmul, _backends.cudnn.rnn)
_EVERYWHERE = (*_ON_CUDA, _backends.mkldnn.matmul, _backends.mkldnn.rnn)
