"""What a model architecture must offer: sizes that can be written to JSON, named parameters, named sites, a forward pass.

An architecture holds no parameters. They come in with each call, as `Weights`, so that the same forward pass serves one
model, a population, and a population in training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from partwise.layers.initialise import Parameter


@dataclass(frozen=True)
class UnitAxis:
    """An axis of a parameter along which hidden units lie: unit j at `start + j`, and again in each further block."""

    parameter: str
    axis: int
    blocks: int = 1
    start: int = 0


@runtime_checkable
class Architecture(Protocol):
    """A frozen dataclass of sizes."""

    def parameters(self) -> Mapping[str, Parameter]:
        """Every parameter by name, in the order in which a population stores them."""
        ...

    def sites(self) -> tuple[str, ...]:
        """Every place in the model where a tap may record or replace a value."""
        ...

    def forward(self, weights: Any, *inputs: Any, **options: Any) -> Any:
        """The model's equations over named weights."""
        ...


@runtime_checkable
class HasUnits(Protocol):
    """An architecture that also says where its hidden units are used, so that a unit can be weighed and removed as a whole."""

    def unit_axes(self) -> Mapping[str, tuple[UnitAxis, ...]]:
        """By side (`encoder`, `decoder`): every axis of every parameter that belongs to a unit of that side."""
        ...

    def units(self) -> Mapping[str, int]:
        """How many units each side has."""
        ...
