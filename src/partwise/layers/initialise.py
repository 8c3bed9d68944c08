"""Initial parameters, drawn per parameter name: one more parameter, or one more member, changes no other draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from partwise.errors import unknown
from partwise.randomness import generator

SCHEMES = ("uniform", "pytorch")
UNIFORM_RANGE = 0.08


@dataclass(frozen=True)
class Parameter:
    """Shape of a parameter, and the range in which PyTorch draws it (None: normal, as its embeddings; 0: zeros)."""

    shape: tuple[int, ...]
    pytorch_range: float | None


def linear(width: int, out: int, *, bias: bool = True, range_of: int | None = None) -> dict[str, Parameter]:
    """`weight` and `bias` of a linear map; `range_of` is the width that PyTorch derives the range from (default: `width`)."""
    bound = (range_of or width) ** -0.5
    weight = {"weight": Parameter((out, width), bound)}
    return weight | ({"bias": Parameter((out,), bound)} if bias else {})


def embedding(words: int, width: int) -> dict[str, Parameter]:
    return {"weight": Parameter((words, width), None)}


def recurrent_cell(gates: int, width: int, hidden: int) -> dict[str, Parameter]:
    """The input map and the recurrent map of a GRU (3 gates) or LSTM (4 gates), drawn as PyTorch draws them."""
    maps = {
        "input": linear(width, gates * hidden, range_of=hidden),
        "recurrent": linear(hidden, gates * hidden, range_of=hidden),
    }
    return {f"{name}.{kind}": parameter for name, parts in maps.items() for kind, parameter in parts.items()}


def draw(parameters: Mapping[str, Parameter], scheme: str, seed: int) -> dict[str, Float32[np.ndarray, ...]]:
    """One member's parameters. `uniform`: all from U(-.08, .08), as the paper's code did; `pytorch`: each module's default."""
    if scheme not in SCHEMES:
        raise unknown("initialisation", scheme, SCHEMES)
    drawn = {}
    for name, parameter in parameters.items():
        random = generator(seed, "initialise", name)
        if scheme == "uniform":
            values = random.uniform(-UNIFORM_RANGE, UNIFORM_RANGE, parameter.shape)
        elif parameter.pytorch_range is None:
            values = random.standard_normal(parameter.shape)
        else:
            values = random.uniform(-parameter.pytorch_range, parameter.pytorch_range, parameter.shape)
        drawn[name] = values.astype(np.float32)
    return drawn
