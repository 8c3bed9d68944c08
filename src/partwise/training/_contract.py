"""What can be trained in a run: a specification that says what is computed, and the trainee that computes it.

The run (`run.py`) owns the folder, the epochs, what is kept, and resuming; a trainee owns its data, its step, its history
and what it makes of the weights in the end. `rows` trains on pairs of sentences, `streams` on running text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from jaxtyping import Int64
from torch import Tensor

from partwise.population import Member, Population
from partwise.training.history import History

Report = Callable[[float], None]
"""Called with the epochs done so far, fractions included."""


@runtime_checkable
class Optimiser(Protocol):
    """Updates a population's store from its gradients. `moments` is everything that it needs to go on."""

    gradients: Tensor
    moments: dict[str, Tensor]
    alive: Tensor
    """False for members whose loss or weights were not finite: they have stopped, the others go on."""

    def load(self, moments: dict[str, Tensor], alive: Tensor) -> None: ...

    def step(self) -> Tensor: ...


@runtime_checkable
class Trainee(Protocol):
    """A population with its data, on its device, ready to train."""

    population: Population
    optimiser: Optimiser
    history: History

    def prepare(self) -> None:
        """Called once weights and moments are those to start from: capture graphs, compile."""
        ...

    def train_epoch(self, epoch: int, report: Report) -> None:
        """One epoch, with its losses written into the history."""
        ...

    def evaluate(self, epoch: int) -> None:
        """What is watched, written into the history; a member that has stopped gets NaN."""
        ...

    def selected(self, until: int) -> Int64[np.ndarray, " member"]:
        """Each member's best epoch so far."""
        ...

    def final(self, selected: Population) -> xr.Dataset:
        """What is measured once, at the end, on the last and the selected weights; one dimension is `member`."""
        ...


@runtime_checkable
class Config(Protocol):
    """How long, and what stays on disk."""

    @property
    def epochs(self) -> int: ...

    @property
    def keep_epochs(self) -> tuple[int, ...]: ...

    @property
    def keep_weights(self) -> bool: ...


@runtime_checkable
class Plan(Protocol):
    @property
    def member(self) -> Member: ...


@runtime_checkable
class Spec(Protocol):
    """Everything that decides a run's numbers."""

    @property
    def device(self) -> str: ...

    @property
    def config(self) -> Config: ...

    @property
    def plans(self) -> Sequence[Plan]: ...

    def check(self) -> None:
        """Raise an `InputError` for anything that could stop the run later; called before its folder exists."""
        ...

    def describe(self) -> dict[str, Any]:
        """As JSON; two runs with the same description compute the same."""
        ...

    def trainee(self) -> Trainee: ...
