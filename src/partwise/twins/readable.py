"""What a method that follows values through a recurrent language model needs to know, whoever's model it is.

Both a wrapped model and a population of language models become a `Readable`: a stack of equal recurrent layers
(`layer0`, `layer1`, ...) over named weights, between an embedding (`embedding`) and a linear head (`output`). The weights of a
population have a leading member axis, and so has everything computed from them; nothing else differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from partwise.errors import InputError
from partwise.layers.weights import PlainWeights, StackedWeights, Weights
from partwise.population import Population
from partwise.twins.checked import refuse_dropout
from partwise.twins.wrapped import Wrapped


@dataclass(frozen=True)
class Readable:
    """Parameters by name, and the sizes that go with them. `members` is None for one model without a member axis."""

    cell: str
    layers: int
    hidden: int
    width: int
    parameters: Mapping[str, Tensor]
    members: tuple[str, ...] | None = None
    fused: Wrapped | None = None

    @property
    def weights(self) -> Weights:
        return PlainWeights(self.parameters) if self.members is None else StackedWeights(self.parameters)

    @property
    def device(self) -> torch.device:
        return self.parameters["layer0.recurrent.weight"].device

    @property
    def dtype(self) -> torch.dtype:
        return self.parameters["layer0.recurrent.weight"].dtype

    @property
    def words(self) -> int | None:
        """How many words the embedding knows; None without one."""
        table = self.parameters.get("embedding.weight")
        return None if table is None else table.shape[-2]

    @property
    def outputs(self) -> int | None:
        """How many words the head scores; None without one."""
        table = self.parameters.get("output.weight")
        return None if table is None else table.shape[-2]

    def of_members(self) -> list[Readable]:
        """One model after the other, each without a member axis."""
        if self.members is None:
            return [self]
        sizes = (self.cell, self.layers, self.hidden, self.width)
        rows = range(len(self.members))
        return [Readable(*sizes, {name: value[row] for name, value in self.parameters.items()}) for row in rows]

    @property
    def lead(self) -> tuple[int, ...]:
        """The sizes in front of every value: (members,) or nothing."""
        return () if self.members is None else (len(self.members),)


def is_finite(values: Tensor) -> bool:
    """No NaN, no infinity: from the extremes, so that a large table is read once and nothing is written."""
    return bool(torch.isfinite(torch.stack(values.aminmax())).all())


def readable(model: Any, method: str, dtype: torch.dtype | None = None) -> Readable:
    """A wrapped model, or a population of language models, for `method`; what it cannot follow is refused with the reason."""
    if isinstance(model, Wrapped):
        for twin in model.twins:
            refuse_dropout(twin.module)
            if twin.directions > 1:
                raise InputError(
                    f"{method} cannot follow a bidirectional model: its backward layers read the sentence from the end, so "
                    "that no step is before another; wrap a unidirectional one"
                )
            if twin.projection:
                raise InputError(
                    f"{method} does not follow proj_size (here {twin.projection}): its hidden states are not the cells' "
                    "own; wrap a module without projection"
                )
        found = Readable(model.cell, model.layers, model.hidden, model.width, model.parameters, fused=model)
    elif isinstance(model, Population) and {"layers", "cell", "hidden"} <= set(vars(model.architecture)):
        width = model.parameters["embedding.weight"].shape[-1]
        sizes: Any = model.architecture
        found = Readable(sizes.cell, sizes.layers, sizes.hidden, width, model.parameters, model.names)
    else:
        raise InputError(
            f"{method} reads language models: what pw.wrap(...) returns, or a population of language-model; found "
            f"{type(model).__name__}"
        )
    detached = {name: value.detach() for name, value in found.parameters.items()}
    strange = [name for name, value in detached.items() if not is_finite(value)]
    if strange:
        raise InputError(f"the model has weights that are not finite: {', '.join(strange)}; mend or retrain it")
    cast = {name: value.to(dtype) for name, value in detached.items()} if dtype is not None else detached
    if not cast["layer0.recurrent.weight"].dtype.itemsize >= 4:
        raise InputError(f"{method} needs float32 or float64, the model is {found.dtype}; pass dtype=torch.float32")
    sizes_differ = found.cell not in ("lstm", "gru") or any(
        cast[f"layer{layer}.recurrent.weight"].shape[-1] != found.hidden for layer in range(found.layers)
    )
    if sizes_differ:
        raise InputError(f"{method} reads layers of one width; found several")
    return Readable(found.cell, found.layers, found.hidden, found.width, cast, found.members, found.fused)
