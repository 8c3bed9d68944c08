"""Independent pieces of work next to each other on a GPU: small kernels leave most of the device idle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache

import torch

_LANES = 4


@contextmanager
def side_by_side(device: torch.device, pieces: int) -> Iterator[Callable[[int], AbstractContextManager[object]]]:
    """Piece k of the work runs `with lane(k):`; all of it is done, in the order of the device, when the block ends."""
    if device.type != "cuda" or pieces < 2:
        yield lambda _: nullcontext()
        return
    here, lanes = torch.cuda.current_stream(device), _lanes(device)
    for stream in lanes:
        stream.wait_stream(here)
    yield lambda number: torch.cuda.stream(lanes[number % _LANES])
    for stream in lanes:
        here.wait_stream(stream)


@cache
def _lanes(device: torch.device) -> tuple[torch.cuda.Stream, ...]:
    return tuple(torch.cuda.Stream(device) for _ in range(_LANES))
