"""What a run on running text computes: everything that decides its numbers, checked before anything is written."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from partwise.errors import InputError
from partwise.layers.initialise import SCHEMES
from partwise.models.language_model import LanguageModel
from partwise.parts import mask_of
from partwise.population import Member
from partwise.tasks._contract import Corpus
from partwise.training import checkpoint
from partwise.training._contract import Trainee
from partwise.training.streams.trainee import SELECT_ON, TRAIN, StreamsTrainee


@dataclass(frozen=True, kw_only=True)
class StreamConfig:
    """Shared by all members: `streams` are read side by side, `window` steps at a time are learned from."""

    epochs: int
    streams: int = 20
    window: int = 35
    clip: float = 0.25
    keep_epochs: tuple[int, ...] = ()
    keep_weights: bool = True

    def __post_init__(self) -> None:
        faults = [
            f"{name} is {getattr(self, name)}; it must be above 0"
            for name in ("epochs", "streams", "window", "clip")
            if not getattr(self, name) > 0
        ]
        beyond = [epoch for epoch in self.keep_epochs if not 0 <= epoch <= self.epochs]
        if beyond:
            faults.append(f"keep_epochs names epoch {beyond[0]}; the run has epochs 0 (untrained) to {self.epochs}")
        if faults:
            raise InputError.of(faults)


@dataclass(frozen=True, kw_only=True)
class StreamPlan:
    """One member's own training: plain gradient descent at `learning_rate`, with momentum and weight decay if any."""

    member: Member
    learning_rate: float = 1.0
    momentum: float = 0.0
    weight_decay: float = 0.0
    initialisation: str = "pytorch"
    frozen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise InputError.of(f"member {self.member.name}: {fault}" for fault in faults)

    def _faults(self) -> Iterable[str]:
        if not self.learning_rate > 0:
            yield f"learning_rate is {self.learning_rate}; it must be above 0"
        if not 0 <= self.momentum < 1:
            yield f"momentum is {self.momentum}; it must be 0 (none) or above, and below 1"
        if self.weight_decay < 0:
            yield f"weight_decay is {self.weight_decay}; it must be 0 (none) or above"
        if self.initialisation not in SCHEMES:
            yield f"initialisation is {self.initialisation!r}; allowed: {', '.join(SCHEMES)}"


@dataclass(frozen=True, eq=False)
class StreamSpec:
    """Language models, each on a corpus of its own (or on the same again)."""

    architecture: LanguageModel
    plans: tuple[StreamPlan, ...]
    corpora: tuple[Corpus, ...]
    config: StreamConfig
    device: str = "cpu"

    def trainee(self) -> Trainee:
        return StreamsTrainee(self)

    def describe(self) -> dict[str, Any]:
        return {
            "architecture": checkpoint.describe(self.architecture),
            "plans": [dataclasses.asdict(plan) for plan in self.plans],
            "data": [{"origin": corpus.origin, "fingerprint": corpus.fingerprint()} for corpus in self.corpora],
            "config": dataclasses.asdict(self.config) | {"keep_epochs": list(self.config.keep_epochs)},
            "device": self.device,
        }

    def check(self) -> None:
        faults = list(self._faults())
        if faults:
            raise InputError.of(faults)

    def _faults(self) -> Iterable[str]:
        if len(self.corpora) != len(self.plans):
            yield f"{len(self.corpora)} corpora for {len(self.plans)} members; each member needs its own (or the same again)"
        names = [plan.member.name for plan in self.plans]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            yield f"members need names of their own; found twice: {', '.join(twice)}"
        for plan in self.plans:
            mask_of(self.architecture, plan.frozen)
        if len({corpus.words for corpus in self.corpora}) > 1:
            yield "the members of one population need corpora with the same words; found several vocabularies"
        if wrong := {len(corpus.words) for corpus in self.corpora} - {self.architecture.words}:
            yield f"the model knows {self.architecture.words} words, a corpus has {min(wrong)}"
        for split in (TRAIN, SELECT_ON):
            lengths = {len(corpus.streams.get(split, ())) for corpus in self.corpora}
            if len(lengths) > 1:
                yield f"the members of one population need texts of equal length; {split} has {sorted(lengths)} words"
            if (shortest := min(lengths)) < 2 * self.config.streams:
                yield f"{split} has {shortest} words; {self.config.streams} streams of 2 need {2 * self.config.streams}"
