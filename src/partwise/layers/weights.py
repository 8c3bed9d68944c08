"""The only room that knows about the member axis: linear maps and embeddings, in three ways that give the same numbers.

- `PlainWeights`: one model, no member axis. What an analysis reads, taps and differentiates.
- `StackedWeights`: a population; every parameter has a leading axis `member`, and so has every value.
- `PostponedWeights`: a population in training. The backward pass of a linear map only passes the gradient on to its
  input and notes (input, gradient of the output); `collect` then makes each weight's gradient with ONE product over
  all steps, written straight into the gradient store. Autograd would make and add up one gradient a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from partwise.layers.streams import side_by_side

Parameters = Mapping[str, Tensor]
Note = tuple[Tensor, Tensor]  # what went into a map, and the gradient of what came out


@runtime_checkable
class Weights(Protocol):
    """Named maps. `hand_derived` says whether recurrences may use their hand-derived backward (first order only)."""

    hand_derived: bool

    def linear(self, name: str, x: Float[Tensor, ...]) -> Float[Tensor, ...]:
        """x W^T + b, with W and b the parameters `name.weight` and (where there is one) `name.bias`."""
        ...

    def embedding(self, name: str, ids: Int[Tensor, ...]) -> Float[Tensor, ...]:
        """The rows of `name.weight` at `ids`."""
        ...


class PlainWeights:
    """One model: parameters without a member axis."""

    hand_derived = False

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def linear(self, name: str, x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch out"]:
        return functional.linear(x, self.parameters[f"{name}.weight"], self.parameters.get(f"{name}.bias"))

    def embedding(self, name: str, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch width"]:
        return functional.embedding(ids, self.parameters[f"{name}.weight"])


class StackedWeights:
    """A population: parameters and values with a leading member axis."""

    hand_derived = False

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def linear(self, name: str, x: Float[Tensor, "member *batch width"]) -> Float[Tensor, "member *batch out"]:
        weight, bias = self.parameters[f"{name}.weight"], self.parameters.get(f"{name}.bias")
        return _stacked_linear(x, weight, bias)

    def embedding(self, name: str, ids: Int[Tensor, "member ..."]) -> Float[Tensor, "member *batch width"]:
        return _stacked_rows(self.parameters[f"{name}.weight"], ids)


class PostponedWeights:
    """A population in training: weight gradients are made once, by `collect`, after `backward()`."""

    hand_derived = True

    def __init__(self, parameters: Parameters, gradients: Parameters, shared: Mapping[str, str] | None = None) -> None:
        """`shared` names parameters that are others by another name: their gradients are added to those of the others."""
        self.parameters = parameters
        device = next(iter(parameters.values())).device
        self._anchor = torch.zeros((), device=device, requires_grad=True)  # so that autograd visits maps of plain ids
        self._notes: dict[str, list[Note]] = {}
        self._maps: dict[str, dict[str, Tensor]] = {}
        for name, gradient in gradients.items():
            map_name, kind = name.rsplit(".", 1)
            self._maps.setdefault(map_name, {})[kind] = gradient
        self._shared = {name.rsplit(".", 1)[0]: gradients[other] for name, other in (shared or {}).items()}

    def linear(self, name: str, x: Float[Tensor, "member *batch width"]) -> Float[Tensor, "member *batch out"]:
        weight, bias = self.parameters[f"{name}.weight"], self.parameters.get(f"{name}.bias")
        return _PostponedLinear.apply(x, self._anchor, weight, bias, self._notes.setdefault(name, []))

    def embedding(self, name: str, ids: Int[Tensor, "member ..."]) -> Float[Tensor, "member *batch width"]:
        weight = self.parameters[f"{name}.weight"]
        return _PostponedEmbedding.apply(ids, self._anchor, weight, self._notes.setdefault(name, []))

    @torch.no_grad()
    def collect(self) -> None:
        """Write every parameter's gradient of the backward pass just done; parameters that took no part get zero."""
        with side_by_side(self._anchor.device, len(self._maps)) as lane:
            for number, (map_name, kinds) in enumerate(self._maps.items()):
                with lane(number):
                    self._collect_map(kinds, self._notes.get(map_name, []))
        for map_name, gradient in self._shared.items():  # once the others have written theirs
            if notes := self._notes.get(map_name, []):
                gradient.baddbmm_(_joined(notes, 1).mT, _joined(notes, 0))
        for notes in self._notes.values():
            notes.clear()  # the graph holds these very lists: a note left in one would keep the graph alive for good

    def _collect_map(self, kinds: Parameters, notes: list[Note]) -> None:
        if not notes:
            for gradient in kinds.values():
                gradient.zero_()
        elif not notes[0][0].is_floating_point():
            _sum_rows(kinds["weight"], notes)
        else:
            gradients = _joined(notes, 1)
            if "weight" in kinds:
                kinds["weight"].baddbmm_(gradients.mT, _joined(notes, 0), beta=0)
            if "bias" in kinds:
                torch.sum(gradients, dim=1, out=kinds["bias"])


class _PostponedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, weight: Tensor, bias: Tensor | None, notes: list[Note]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.notes = notes
        return _stacked_linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        ctx.notes.append((x.detach(), gradient))
        passed_on = _stacked_product(gradient, weight) if ctx.needs_input_grad[0] else None
        return passed_on, None, None, None, None


class _PostponedEmbedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ids: Tensor, anchor: Tensor, weight: Tensor, notes: list[Note]) -> Tensor:
        ctx.ids, ctx.notes = ids, notes
        return _stacked_rows(weight, ids)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        ctx.notes.append((ctx.ids, gradient))
        return None, None, None, None


def _stacked_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    flat = x.reshape(x.shape[0], -1, x.shape[-1])
    if flat.shape[1] == 1:  # one row: the matrix on the left reads memory twice as fast as on the right
        column = flat.mT
        out = torch.bmm(weight, column) if bias is None else torch.baddbmm(bias.unsqueeze(-1), weight, column)
        return out.view(*x.shape[:-1], weight.shape[1])
    out = torch.bmm(flat, weight.mT) if bias is None else torch.baddbmm(bias.unsqueeze(1), flat, weight.mT)
    return out.view(*x.shape[:-1], weight.shape[1])


def _stacked_product(gradient: Tensor, weight: Tensor) -> Tensor:
    """gradient @ W: how the gradient of a linear map's output becomes that of its input."""
    flat = gradient.reshape(gradient.shape[0], -1, gradient.shape[-1])
    return torch.bmm(flat, weight).view(*gradient.shape[:-1], weight.shape[-1])


def _stacked_rows(table: Tensor, ids: Tensor) -> Tensor:
    members = torch.arange(table.shape[0], device=table.device).view(-1, *[1] * (ids.dim() - 1))
    return table[members, ids]


def _joined(notes: list[Note], which: int) -> Float[Tensor, "member rows width"]:
    """All inputs (0) or all output gradients (1) that a map saw, one after the other."""
    parts = [note[which].reshape(note[which].shape[0], -1, note[which].shape[-1]) for note in notes]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def _sum_rows(gradient: Float[Tensor, "member rows width"], notes: list[Note]) -> None:
    gradient.zero_()
    for ids, gradients in notes:
        flat_ids = ids.reshape(ids.shape[0], -1, 1).expand(-1, -1, gradient.shape[-1])
        gradient.scatter_add_(1, flat_ids, gradients.reshape(gradient.shape[0], -1, gradient.shape[-1]))
