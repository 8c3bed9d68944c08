"""Splitting a non-linearity, and multiplying what was split.

A gate's input is a sum of three parts; the parts of its activation sum to the activation, whatever the split.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from partwise.methods.contextual_decomposition.variants import Variant

Value = Float[Tensor, "*batch width"]


class Split(NamedTuple):
    """A state: what the phrase contributes, and what everything else does."""

    relevant: Value
    irrelevant: Value


class Parts(NamedTuple):
    """A gate, or its input: what the phrase, the other words, and the biases contribute."""

    relevant: Value
    irrelevant: Value
    bias: Value


class Product(NamedTuple):
    """A gate times its source; the product of their bias parts stands apart until it is credited."""

    relevant: Value
    irrelevant: Value
    bias: Value


def activate(function: str, parts: Parts, how: str) -> Parts:
    """The parts of f(rel + irrel + b)."""
    r, q, b = parts
    f = torch.sigmoid if function == "sigmoid" else torch.tanh
    if how == "bias-first":
        # rel = 1/2 {[f(r + b) - f(b)] + [f(r + q + b) - f(q + b)]}, irrel likewise, bias = f(b)
        with_r, with_q, whole, alone = f(r + b), f(q + b), f(r + q + b), f(b)
        relevant = ((with_r - alone) + (whole - with_q)) / 2
        irrelevant = ((with_q - alone) + (whole - with_r)) / 2
        return Parts(relevant, irrelevant, alone)
    nothing = f(torch.zeros_like(b))
    share = torch.zeros_like(nothing) if how == "shapley-zero" else nothing
    first, second, third = _shapley(f, (r, q, b), share)
    return Parts(first, second, third + share)


def activate_state(state: Split) -> Split:
    """tanh of a cell: the two orders averaged; tanh(0) = 0, so that nothing is left over."""
    r, q = state
    whole, with_r, with_q = torch.tanh(r + q), torch.tanh(r), torch.tanh(q)
    return Split((with_r + whole - with_q) / 2, (with_q + whole - with_r) / 2)


def multiply(gate: Parts, source: Parts | Split, variant: Variant) -> Product:
    """Every product of a gate's part with a source's part, on the side where the variant counts it."""
    gates = {"rel": gate.relevant, "irrel": gate.irrelevant, "b": gate.bias}
    sources = {"rel": source.relevant, "irrel": source.irrelevant}
    if isinstance(source, Parts):
        sources["b"] = source.bias
    sides: dict[bool, Tensor] = {side: torch.zeros_like(gate.relevant * source.relevant) for side in (True, False)}
    bias = torch.zeros_like(sides[True])
    for one, left in gates.items():
        for other, right in sources.items():
            if (one, other) == ("b", "b"):
                bias = left * right
            else:
                side = f"{one}-{other}" in variant.interactions
                sides[side] = sides[side] + left * right
    return Product(sides[True], sides[False], bias)


def credit(product: Product, credited: Bool[Tensor, "*batch 1"]) -> Split:
    """Give the product of the bias parts to one side: to the relevant one where `credited`."""
    mine = torch.where(credited, product.bias, 0.0)
    others = torch.where(credited, 0.0, product.bias)
    return Split(product.relevant + mine, product.irrelevant + others)


def _shapley(f, parts: tuple[Tensor, Tensor, Tensor], nothing: Tensor) -> list[Tensor]:  # type: ignore[no-untyped-def]
    """Each of three parts' average marginal contribution to f of the sum, over all orders; `nothing` is f of no part."""
    found = []
    whole = f(parts[0] + parts[1] + parts[2])
    for k in range(3):
        own, (one, two) = parts[k], (part for j, part in enumerate(parts) if j != k)
        first = f(own) - nothing
        middle = (f(own + one) - f(one)) + (f(own + two) - f(two))
        last = whole - f(one + two)
        found.append(first / 3 + middle / 6 + last / 3)
    return found
