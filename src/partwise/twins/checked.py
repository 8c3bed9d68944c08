"""Make a gated twin, and prove it: outputs, last states and gradients against the fused module, on random input.

1. Refuse what a twin would not compute: plain RNNs, dropout in training mode, weights that are not finite.
2. Copy the module (the reader's own is not run, moved or changed), once in float64 and once in float32.
3. Give both the same random sequences of several lengths, packed, with random initial states and a random gradient.
4. Compare everything that comes out, forwards and backwards, relative to the module's norm. Above the tolerance: refused.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from partwise.errors import InputError
from partwise.layers.precision import exact_products
from partwise.twins.gated_twin import GatedTwin

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
_LENGTHS = (5, 2, 4)


def gated_twin(module: Any) -> GatedTwin:
    """The twin of an `nn.LSTM`, `nn.GRU`, `nn.LSTMCell` or `nn.GRUCell`; `certificate` holds its largest relative errors."""
    twin = GatedTwin(module)
    refuse_dropout(module)
    strange = [name for name, value in module.named_parameters() if not torch.isfinite(value).all()]
    if strange:
        raise InputError(f"recurrent has weights that are not finite: {', '.join(strange)}; mend or retrain the model")
    try:
        with exact_products(), torch.enable_grad():
            errors = {dtype: _largest_error(module, dtype) for dtype in TOLERANCE}
    except Exception as failure:  # whatever a forward of the reader's own may raise
        raise InputError(
            f"recurrent failed on packed random sentences, so that its twin cannot be checked: {type(failure).__name__}: "
            f"{failure} (is its forward overridden, or are there hooks on it?)"
        ) from failure
    for dtype, error in errors.items():
        if not error <= TOLERANCE[dtype]:
            raise InputError(
                f"recurrent computes something else than its class says: its twin differs by {error:.1e} relative in {dtype}, "
                f"allowed {TOLERANCE[dtype]:.0e} (is its forward overridden, or are there hooks on it?)"
            )
    twin.certificate = {str(dtype).removeprefix("torch."): error for dtype, error in errors.items()}
    return twin


def refuse_dropout(module: Any) -> None:
    """A module whose outputs are random has no twin; it may have been sent back to training after it was wrapped."""
    if module.training and getattr(module, "dropout", 0):
        raise InputError(
            f"recurrent is in training mode with dropout {module.dropout}, so its outputs are random; "
            "call .eval() on it first (the twin has no dropout)"
        )


def _largest_error(module: nn.Module, dtype: torch.dtype) -> float:
    fused: Any = copy.deepcopy(module).to(dtype=dtype)
    for parameter in fused.parameters():
        parameter.requires_grad_(True)
    twin = GatedTwin(fused)
    inputs = _random_inputs(twin, next(fused.parameters()))
    theirs, ours = _outputs_and_gradients(fused, fused, inputs), _outputs_and_gradients(twin, fused, inputs)
    return max(float((a - b).norm() / b.norm().clamp_min(1e-30)) for a, b in zip(ours, theirs, strict=True))


def _random_inputs(twin: GatedTwin, like: Tensor) -> list[Tensor]:
    """Sequences and initial states, and nothing of the caller's random state used up."""
    random = torch.Generator().manual_seed(0)
    rows = len(_LENGTHS)
    lead = () if twin.is_cell else (len(twin.names),)
    time = () if twin.is_cell else (max(_LENGTHS),)
    shapes = [(rows, *time, twin.width), (*lead, rows, twin.projection or twin.hidden)]
    shapes += [(*lead, rows, twin.hidden)] if twin.cell == "lstm" else []
    return [torch.randn(shape, generator=random, dtype=torch.float64).to(like).requires_grad_() for shape in shapes]


def _outputs_and_gradients(call: Any, fused: nn.Module, inputs: list[Tensor]) -> list[Tensor]:
    x, *states = inputs
    state = tuple(states) if len(states) > 1 else states[0]
    if x.dim() == 3:
        said = call(pack_padded_sequence(x, torch.tensor(_LENGTHS), batch_first=True, enforce_sorted=False), state)
    else:
        said = call(x, state)
    outputs = _tensors(said)
    random = torch.Generator().manual_seed(1)
    weights = [torch.randn(out.shape, generator=random, dtype=torch.float64).to(out) for out in outputs]
    total = torch.stack([(out * weight).sum() for out, weight in zip(outputs, weights, strict=True)]).sum()
    gradients = torch.autograd.grad(total, [*inputs, *fused.parameters()])
    return [out.detach() for out in outputs] + list(gradients)


def _tensors(said: Any) -> list[Tensor]:
    if isinstance(said, Tensor):
        return [said]
    if isinstance(said, PackedSequence):
        return [said.data]
    return [tensor for part in said for tensor in _tensors(part)]
