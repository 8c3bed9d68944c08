"""The reader's own model, wrapped: an embedding, a recurrence that is twinned, and a linear head, all left untouched.

`wrap` makes it. Calling it gives the logits that the reader's modules give, with every gate open to a tap.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from partwise.errors import InputError
from partwise.layers.tap import Tap, begin, untouched
from partwise.layers.weights import PlainWeights
from partwise.twins.checked import gated_twin
from partwise.twins.gated_twin import GatedTwin, Shared, States


class Wrapped:
    """A model made of the reader's modules. `certificate` says how far the twins are from the fused modules."""

    def __init__(self, embedding: nn.Embedding | None, twins: Sequence[GatedTwin], head: nn.Linear | None) -> None:
        self.embedding, self.twins, self.head = embedding, tuple(twins), head
        first = self.twins[0]
        self.cell, self.hidden, self.width = first.cell, first.hidden, first.width
        self.layers = sum(twin.layers for twin in self.twins)
        self.certificate = {key: max(twin.certificate[key] for twin in self.twins) for key in first.certificate}

    def __repr__(self) -> str:
        return f"Wrapped({self.embedding}, {', '.join(str(twin.module) for twin in self.twins)}, {self.head})"

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The modules' own parameters under our names: `embedding.weight`, `layer0.input.weight`, ..., `output.bias`."""
        named: dict[str, Tensor] = dict(Shared(self.embedding, {"embedding.weight": "weight"})) if self.embedding else {}
        for twin, first in zip(self.twins, self._firsts(), strict=True):
            named |= {_shift(name, first): value for name, value in twin.parameters.items()}
        if self.head is not None:
            kinds = ("weight",) if self.head.bias is None else ("weight", "bias")
            named |= Shared(self.head, {f"output.{kind}": kind for kind in kinds})
        return named

    @property
    def weights(self) -> PlainWeights:
        return PlainWeights(self.parameters)

    def sites(self) -> tuple[str, ...]:
        inside = [_shift(site, first) for twin, first in zip(self.twins, self._firsts(), strict=True) for site in twin.sites()]
        return ("embedding", *inside, *(("logits",) if self.head is not None else ()))

    def __call__(
        self,
        ids: Int[Tensor, "sentence time"] | Float[Tensor, "sentence time width"],
        state: Sequence[States] | None = None,
        *,
        tap: Tap = untouched,
    ) -> Float[Tensor, "sentence time out"]:
        """Logits at every step (the top layer's output where there is no head). `state`: one (hidden, cell) a layer."""
        begin(tap, self.sites())
        x = ids if ids.is_floating_point() else self._embed(ids)
        if tap is not untouched:
            x = torch.stack([tap("embedding", t, x[:, t]) for t in range(x.shape[1])], dim=1)
        for twin, first in zip(self.twins, self._firsts(), strict=True):
            x = twin.run(x, None if state is None else state[first : first + twin.layers], _shifted(tap, first))
        if self.head is None:
            return x
        logits = self.head(x)
        return logits if tap is untouched else torch.stack([tap("logits", t, logits[:, t]) for t in range(x.shape[1])], dim=1)

    def _embed(self, ids: Tensor) -> Tensor:
        if self.embedding is None:
            raise InputError("ids are given, but the model was wrapped without embedding=; give vectors or wrap with it")
        return self.embedding(ids)

    def _firsts(self) -> list[int]:
        """The number of the first layer of each twin."""
        return [sum(twin.layers for twin in self.twins[:place]) for place in range(len(self.twins))]


def wrap(
    *,
    recurrent: Any,
    embedding: Any = None,
    head: Any = None,
) -> Wrapped:
    """Open a model of one's own: `wrap(embedding=emb, recurrent=lstm, head=linear)`.

    `recurrent` is an `nn.LSTM`, `nn.GRU`, `nn.LSTMCell` or `nn.GRUCell`, or several of one kind from the bottom up.
    `embedding` is an `nn.Embedding` (without it, give embedded input), `head` one `nn.Linear` (without it, nothing is decoded).
    """
    modules = [recurrent] if isinstance(recurrent, nn.Module) and not isinstance(recurrent, nn.ModuleList) else list(recurrent)
    if not modules:
        raise InputError("recurrent is empty; give at least one recurrent module")
    twins = [gated_twin(module) for module in modules]
    faults = [*_stack_faults(twins), *_end_faults(twins, embedding, head)]
    if faults:
        raise InputError.of(faults)
    return Wrapped(embedding, twins, head)


def _stack_faults(twins: Sequence[GatedTwin]) -> list[str]:
    faults = []
    for place, (below, above) in enumerate(itertools.pairwise(twins)):
        out = _out(below)
        if above.cell != below.cell:
            faults.append(f"recurrent mixes {below.cell} and {above.cell}; all must be of one kind")
        if above.width != out:
            faults.append(f"recurrent {place + 1} reads {above.width} numbers, but {place} gives {out}")
    return faults


def _end_faults(twins: Sequence[GatedTwin], embedding: Any, head: Any) -> list[str]:
    faults = []
    if embedding is not None and not isinstance(embedding, nn.Embedding):
        faults.append(f"embedding is a {type(embedding).__name__}; give an nn.Embedding, or None and embedded input")
    elif embedding is not None:
        if embedding.embedding_dim != twins[0].width:
            faults.append(f"embedding gives {embedding.embedding_dim} numbers a word, but recurrent reads {twins[0].width}")
        if embedding.max_norm is not None:
            faults.append("embedding has max_norm, so that reading changes it; clip its rows once and set max_norm to None")
    if head is not None and type(head) is not nn.Linear:
        faults.append(f"head is a {type(head).__name__}; give one nn.Linear, or None")
    elif head is not None and head.in_features != _out(twins[-1]):
        faults.append(f"head reads {head.in_features} numbers, but recurrent gives {_out(twins[-1])}")
    ends: Mapping[str, Any] = {"embedding": embedding, "head": head}
    place = next(twins[0].module.parameters())
    for name, module in ends.items():
        for key, value in module.named_parameters() if isinstance(module, nn.Module) else ():
            if not torch.isfinite(value).all():
                faults.append(f"{name}.{key} has values that are not finite; mend or retrain the model")
            if value.device != place.device or value.dtype != place.dtype:
                found, wanted = f"{value.dtype} on {value.device}", f"{place.dtype} on {place.device}"
                faults.append(f"{name}.{key} is {found}, recurrent is {wanted}; move one of them")
    return faults


def _out(twin: GatedTwin) -> int:
    return (twin.projection or twin.hidden) * twin.directions


def _shift(name: str, first: int) -> str:
    """`layer0.x` of a twin whose first layer is number `first` in the whole stack."""
    layer, dot, rest = name.partition(".")
    return f"layer{int(layer.removeprefix('layer')) + first}{dot}{rest}"


def _shifted(tap: Tap, first: int) -> Tap:
    return tap if first == 0 else lambda site, step, value: tap(_shift(site, first), step, value)
