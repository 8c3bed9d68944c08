"""A gated twin: what a fused `nn.LSTM` or `nn.GRU` computes, step by step, from the same parameters, with every gate a site.

The twin is called like its module and returns what the module returns. It shares the module's parameters (train the module,
and the twin follows) and leaves the module as it is. Layer l is called `layerl`, its backward direction `layerl.reverse`:
`layer0.forget_gate` and `layer1.reverse.hidden` are sites. A step is counted from the start of the sentence in both directions.
With `proj_size`, `hidden` is the state before its projection, and the site `projected` is what flows on.

`gated_twin(module)` (in `checked.py`) compares the two on random input before it hands a twin out; what cannot be twinned is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from partwise.errors import InputError
from partwise.layers import recurrence
from partwise.layers.tap import Tap, begin, untouched
from partwise.layers.weights import PlainWeights

KINDS: dict[type[nn.Module], str] = {nn.LSTM: "lstm", nn.GRU: "gru", nn.LSTMCell: "lstm", nn.GRUCell: "gru"}
_PARAMETERS = {
    "input.weight": "weight_ih",
    "recurrent.weight": "weight_hh",
    "input.bias": "bias_ih",
    "recurrent.bias": "bias_hh",
}
States = tuple[Tensor, ...]


class Shared(Mapping[str, Tensor]):
    """The module's own parameters under our names, looked up at each use, so that they are never out of date."""

    def __init__(self, module: nn.Module, names: Mapping[str, str]) -> None:
        self._module, self._names = module, dict(names)

    def __getitem__(self, name: str) -> Tensor:
        value: Tensor = getattr(self._module, self._names[name])
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class GatedTwin:
    """The open recurrence of one module; made by `gated_twin`, which checks it and fills in the certificate."""

    certificate: Mapping[str, float]

    def __init__(self, module: Any) -> None:
        self.cell = kind_of(module)
        self.module = module
        self.hidden, self.width = int(module.hidden_size), int(module.input_size)
        self.is_cell = isinstance(module, (nn.LSTMCell, nn.GRUCell))
        self.layers = 1 if self.is_cell else int(module.num_layers)
        self.directions = 1 if self.is_cell else 1 + bool(module.bidirectional)
        self.projection = 0 if self.is_cell else int(module.proj_size)
        self.has_bias = bool(module.bias)
        self.parameters = Shared(module, self._names())
        self.weights = PlainWeights(self.parameters)

    def __repr__(self) -> str:
        return f"GatedTwin({self.module})"

    @property
    def names(self) -> tuple[str, ...]:
        """Every layer and direction, in the order of the module's states."""
        ways = ("", ".reverse")[: self.directions]
        return tuple(f"layer{layer}{way}" for layer in range(self.layers) for way in ways)

    def sites(self) -> tuple[str, ...]:
        inside = (*recurrence.SITES[self.cell], *(("projected",) if self.projection else ()))
        return tuple(f"{name}.{site}" for name in self.names for site in inside)

    def __call__(self, x: Any, state: Any = None, *, tap: Tap = untouched, step: int = 0) -> Any:
        """As the module: packed, batched or single sequences in, the same out. `step` numbers the one step of a cell."""
        begin(tap, self.sites())
        if self.is_cell:
            return self._one_step(x, state, tap, step)
        if isinstance(x, PackedSequence):
            padded, lengths = pad_packed_sequence(x, batch_first=True)
            output, last = self._run(padded, lengths.to(padded.device), state, tap)
            order = torch.arange(len(lengths)) if x.sorted_indices is None else x.sorted_indices.cpu()
            packed = pack_padded_sequence(output[order], lengths[order], batch_first=True)
            return PackedSequence(packed.data, packed.batch_sizes, x.sorted_indices, x.unsorted_indices), last
        single = x.dim() == 2
        if single:
            x, state = x.unsqueeze(0), None if state is None else _each(state, lambda part: part.unsqueeze(1))
        elif not self.module.batch_first:
            x = x.transpose(0, 1)
        output, last = self._run(x, None, state, tap)
        if single:
            return output.squeeze(0), _each(last, lambda part: part.squeeze(1))
        return output if self.module.batch_first else output.transpose(0, 1), last

    def run(self, x: Float[Tensor, "batch time width"], state: Sequence[States] | None, tap: Tap) -> Tensor:
        """The outputs at every step of whole sentences, from a state a layer and direction (default: zero)."""
        packed = None if state is None else tuple(torch.stack(parts) for parts in zip(*state, strict=True))
        return self._run(x, None, packed if self.cell == "lstm" or packed is None else packed[0], tap)[0]

    def run_layer(
        self, name: str, x: Float[Tensor, "batch time width"], state: States, inside: Tensor | None, tap: Tap
    ) -> tuple[Tensor, States]:
        """One layer in one direction: its outputs at every step, and its last state. After a sentence's end it stands still."""
        from_input = self.weights.linear(f"{name}.input", x)
        steps = range(x.shape[1])
        outputs: dict[int, Tensor] = {}
        for t in reversed(steps) if name.endswith(".reverse") else steps:
            new = recurrence.step(self.cell, self.weights, name, from_input[:, t], state, t, tap)
            if self.projection:
                new = (tap(f"{name}.projected", t, self.weights.linear(f"{name}.projection", new[0])), *new[1:])
            if inside is not None:
                here = inside[:, t, None]
                new = tuple(torch.where(here, after, before) for after, before in zip(new, state, strict=True))
            state, outputs[t] = new, new[0]
        output = torch.stack([outputs[t] for t in steps], dim=1)
        return output if inside is None else output.masked_fill(~inside.unsqueeze(-1), 0.0), state

    def _run(self, x: Tensor, lengths: Tensor | None, state: Any, tap: Tap) -> tuple[Tensor, Any]:
        starts = self._initial(x, state)
        inside = None if lengths is None else torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        lasts = []
        for layer in range(self.layers):
            ways = [self.names[layer * self.directions + way] for way in range(self.directions)]
            outputs = []
            for name in ways:
                output, last = self.run_layer(name, x, starts[self.names.index(name)], inside, tap)
                outputs.append(output)
                lasts.append(last)
            x = torch.cat(outputs, dim=-1)
        joined = tuple(torch.stack(parts) for parts in zip(*lasts, strict=True))
        return x, joined if self.cell == "lstm" else joined[0]

    def _one_step(self, x: Tensor, state: Any, tap: Tap, step: int) -> Any:
        start = self._initial(x.reshape(-1, 1, x.shape[-1]), None if state is None else _each(state, self._as_layer))[0]
        from_input = self.weights.linear("layer0.input", x.reshape(-1, x.shape[-1]))
        new = recurrence.step(self.cell, self.weights, "layer0", from_input, start, step, tap)
        shaped = tuple(part.reshape(*x.shape[:-1], -1) for part in new)
        return shaped if self.cell == "lstm" else shaped[0]

    def _as_layer(self, part: Tensor) -> Tensor:
        return part.reshape(1, -1, part.shape[-1])

    def _initial(self, x: Tensor, state: Any) -> list[States]:
        """The state before the first step, one a layer and direction: (hidden,) or (hidden, cell)."""
        if state is not None:
            parts = state if self.cell == "lstm" else (state,)
            return [tuple(part[row] for part in parts) for row in range(len(self.names))]
        hidden, cell = x.new_zeros(len(x), self.projection or self.hidden), x.new_zeros(len(x), self.hidden)
        return [(hidden, cell) if self.cell == "lstm" else (hidden,)] * len(self.names)

    def _names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for layer in range(self.layers):
            for way in range(self.directions):
                ours = f"layer{layer}" + (".reverse" if way else "")
                suffix = "" if self.is_cell else f"_l{layer}" + ("_reverse" if way else "")
                kinds = {kind: theirs for kind, theirs in _PARAMETERS.items() if self.has_bias or not kind.endswith("bias")}
                names |= {f"{ours}.{kind}": theirs + suffix for kind, theirs in kinds.items()}
                if self.projection:
                    names[f"{ours}.projection.weight"] = "weight_hr" + suffix
        return names


def kind_of(module: Any) -> str:
    """Which cell a module is made of; one that has no twin is refused with the reason."""
    for known, cell in KINDS.items():
        if isinstance(module, known):
            return cell
    allowed = ", ".join(f"nn.{known.__name__}" for known in KINDS)
    if isinstance(module, (nn.RNN, nn.RNNCell)):
        raise InputError(f"recurrent is an nn.{type(module).__name__}, which has no gates to open; allowed: {allowed}")
    raise InputError(f"recurrent is a {type(module).__module__}.{type(module).__name__}; allowed: {allowed}")


def _each(state: Any, change: Any) -> Any:
    return tuple(change(part) for part in state) if isinstance(state, tuple) else change(state)
