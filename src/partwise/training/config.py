"""How a population is trained: what all members share, and what each has of its own. Checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from partwise.errors import InputError
from partwise.layers.initialise import SCHEMES
from partwise.population import Member


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Shared by all members. `keep_epochs` names the epochs whose weights stay on disk, for learning dynamics; with
    `keep_weights=False` no weights stay once the run is done, only its history and accuracies.
    """

    epochs: int
    batch_size: int
    learning_rate: float = 0.001
    clip: float = 5.0
    keep_epochs: tuple[int, ...] = ()
    keep_weights: bool = True

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise InputError.of(faults)

    def _faults(self) -> Iterable[str]:
        for name in ("epochs", "batch_size", "learning_rate", "clip"):
            value = getattr(self, name)
            if not value > 0:
                yield f"{name} is {value}; it must be above 0"
        beyond = [epoch for epoch in self.keep_epochs if not 0 <= epoch <= self.epochs]
        if beyond:
            yield f"keep_epochs names epoch {beyond[0]}; the run has epochs 0 (untrained) to {self.epochs}"


@dataclass(frozen=True, kw_only=True)
class MemberPlan:
    """One member's own training: who it is, and what sets it apart.

    `guidance` weighs the attention loss (0: baseline); `teacher_forcing` is the chance, drawn per batch, that the
    decoder is fed the true words; `frozen` names parts that must not move.
    """

    member: Member
    guidance: float = 0.0
    teacher_forcing: float = 0.0
    initialisation: str = "uniform"
    frozen: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise InputError.of(f"member {self.member.name}: {fault}" for fault in faults)

    def _faults(self) -> Iterable[str]:
        if self.guidance < 0:
            yield f"guidance is {self.guidance}; it must be 0 (none) or above"
        if not 0 <= self.teacher_forcing <= 1:
            yield f"teacher_forcing is {self.teacher_forcing}; it is a chance, from 0 to 1"
        if self.initialisation not in SCHEMES:
            yield f"initialisation is {self.initialisation!r}; allowed: {', '.join(SCHEMES)}"
