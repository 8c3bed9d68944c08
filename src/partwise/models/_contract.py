"""What a model architecture must offer: sizes that can be written to JSON, named parameters, named sites, a forward pass.

An architecture holds no parameters. They come in with each call, as `Weights`, so that the same forward pass serves one
model, a population, and a population in training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from partwise.layers.initialise import Parameter


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
