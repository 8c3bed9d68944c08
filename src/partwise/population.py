"""A population: several models of one architecture as one object, their parameters stacked along the axis `member`.

All parameters of all members lie in one flat store of shape (member, parameter), with named views into it: a norm, a
copy, a frozen part or a selected epoch is then one operation on rows. One model is a population of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from partwise.errors import InputError, unknown
from partwise.layers.initialise import Parameter, draw
from partwise.layers.weights import PlainWeights, StackedWeights
from partwise.models._contract import Architecture

_ALIGNMENT = 16  # numbers: every parameter starts on a cache line


@dataclass(frozen=True)
class Member:
    """Who a member is: a name, the seed of its initial weights and data order, and what distinguishes it (arm, sample)."""

    name: str
    seed: int
    labels: Mapping[str, str | int | float] = field(default_factory=dict)


class Layout:
    """Where each parameter lies in a row of the store."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self.shapes = {name: parameter.shape for name, parameter in parameters.items()}
        self.places: dict[str, slice] = {}
        end = 0
        for name, shape in self.shapes.items():
            self.places[name] = slice(end, end + prod(shape))
            end = -(-(end + prod(shape)) // _ALIGNMENT) * _ALIGNMENT
        self.width = end

    def views(self, store: Tensor) -> dict[str, Tensor]:
        """Each parameter of all members, shape (member, ...), sharing the store's memory."""
        return {name: store[:, place].view(-1, *self.shapes[name]) for name, place in self.places.items()}

    def select(self, parts: Sequence[str]) -> Bool[np.ndarray, " parameter"]:
        """True where the parameters of `parts` lie; a part is a name (`encoder.input.weight`) or how names start."""
        chosen = np.zeros(self.width, bool)
        for part in parts:
            names = [name for name in self.places if name == part or name.startswith(f"{part}.")]
            if not names:
                starts = {name.rsplit(".", cut)[0] for name in self.places for cut in range(name.count(".") + 1)}
                raise unknown("part of the model", part, starts | set(self.places))
            for name in names:
                chosen[self.places[name]] = True
        return chosen


class Population:
    """Members of one architecture. `words` keeps the vocabularies they were trained with, by side."""

    def __init__(
        self,
        architecture: Architecture,
        members: Sequence[Member],
        store: Float[Tensor, "member parameter"],
        words: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.architecture = architecture
        self.members = tuple(members)
        self.layout = Layout(architecture.parameters())
        self.store = store
        self.words = {side: tuple(known) for side, known in (words or {}).items()}
        if tuple(store.shape) != (len(self.members), self.layout.width):
            raise InputError(
                f"the store has shape {tuple(store.shape)}; {len(self.members)} members of this architecture "
                f"need ({len(self.members)}, {self.layout.width})"
            )

    @classmethod
    def initial(
        cls,
        architecture: Architecture,
        members: Sequence[Member],
        initialisation: Sequence[str],
        words: Mapping[str, Sequence[str]] | None = None,
    ) -> Population:
        """Untrained members, each drawn from its own seed under its own initialisation scheme."""
        layout = Layout(architecture.parameters())
        store = torch.zeros(len(members), layout.width)
        views = layout.views(store)
        for row, (member, scheme) in enumerate(zip(members, initialisation, strict=True)):
            for name, values in draw(architecture.parameters(), scheme, member.seed).items():
                views[name][row] = torch.from_numpy(values)
        return cls(architecture, members, store, words)

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        return f"Population({len(self)} x {self.architecture}, {', '.join(self.names[:4])}{', ...' if len(self) > 4 else ''})"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Every parameter by name, shape (member, ...): views into the store. A parameter that is another's under another name
        (a tied output map) is there under both."""
        own = self.own_parameters
        return own | {name: own[other] for name, other in self.shared.items()}

    @property
    def own_parameters(self) -> dict[str, Tensor]:
        """Every parameter once."""
        return self.layout.views(self.store)

    @property
    def shared(self) -> Mapping[str, str]:
        """Which names stand for which parameters."""
        of_architecture = getattr(self.architecture, "shared", None)
        return of_architecture() if of_architecture else {}

    def weights(self) -> StackedWeights:
        """All members, for one forward pass over the member axis."""
        return StackedWeights(self.parameters)

    def member(self, name: str) -> PlainWeights:
        """One member as a single model, without the member axis."""
        if name not in self.names:
            raise unknown("member", name, self.names)
        row = self.names.index(name)
        return PlainWeights({key: view[row] for key, view in self.parameters.items()})

    def select(self, names: Sequence[str]) -> Population:
        """A new population of some members, in the order given."""
        for name in names:
            if name not in self.names:
                raise unknown("member", name, self.names)
        rows = [self.names.index(name) for name in names]
        return Population(self.architecture, [self.members[row] for row in rows], self.store[rows].clone(), self.words)

    def to(self, device: str | torch.device | None = None, dtype: torch.dtype | None = None) -> Population:
        """A new population on another device or in another precision."""
        return Population(self.architecture, self.members, self.store.to(device=device, dtype=dtype, copy=True), self.words)

    @staticmethod
    def concatenate(populations: Sequence[Population]) -> Population:
        """One population of the members of several, which must share architecture and vocabularies."""
        first = populations[0]
        for other in populations[1:]:
            if other.architecture != first.architecture or other.words != first.words:
                raise InputError("only populations of one architecture and one vocabulary can be put together")
        members = [member for one in populations for member in one.members]
        return Population(first.architecture, members, torch.cat([one.store for one in populations]), first.words)
