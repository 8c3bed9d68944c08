"""What a run computes: everything that decides its numbers, checked before anything is written."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool

from partwise.errors import InputError
from partwise.models._contract import Architecture
from partwise.parts import mask_of
from partwise.population import Layout, Population
from partwise.tasks._contract import Task
from partwise.training import checkpoint
from partwise.training._contract import Trainee
from partwise.training.config import MemberPlan, TrainingConfig
from partwise.training.rows.trainee import SELECT_ON, TRAIN, RowsTrainee

Mask = Bool[np.ndarray, "member parameter"]


@dataclass(frozen=True, eq=False)
class RunSpec:
    """Everything that decides what a run computes. `watched` splits are evaluated each epoch, all others at the end.

    Members start from drawn weights, or from those of `start` (then `plan.initialisation` says nothing). `held` marks single
    numbers of the store that must not move, beside the parts that a plan names as frozen.
    """

    architecture: Architecture
    plans: tuple[MemberPlan, ...]
    tasks: tuple[Task, ...]
    config: TrainingConfig
    watched: tuple[str, ...]
    device: str = "cpu"
    start: Population | None = None
    held: Mask | None = None

    def frozen_mask(self) -> Mask | None:
        """What must not move, by name or number; None where everything may."""
        if self.held is None and not any(plan.frozen for plan in self.plans):
            return None
        named = np.stack([mask_of(self.architecture, plan.frozen) for plan in self.plans])
        return named if self.held is None else named | self.held

    def describe(self) -> dict[str, Any]:
        return {
            "architecture": checkpoint.describe(self.architecture),
            "plans": [dataclasses.asdict(plan) for plan in self.plans],
            "data": [{"origin": task.origin, "fingerprint": task.fingerprint()} for task in self.tasks],
            "config": dataclasses.asdict(self.config) | {"keep_epochs": list(self.config.keep_epochs)},
            "watched": list(self.watched),
            "device": self.device,
            "start": None if self.start is None else _digest(self.start.store.cpu().numpy()),
            "held": None if self.held is None else _digest(self.held),
        }

    def trainee(self) -> Trainee:
        return RowsTrainee(self)

    def check(self) -> None:
        """Everything that could stop the run later, before its folder exists."""
        if len(self.tasks) != len(self.plans):
            raise InputError(
                f"{len(self.tasks)} tasks for {len(self.plans)} members; each member needs its own (or the same again)"
            )
        names = [plan.member.name for plan in self.plans]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"members need names of their own; found twice: {', '.join(twice)}")
        layout = Layout(self.architecture.parameters())
        for plan in self.plans:
            mask_of(self.architecture, plan.frozen)
        needed = (len(self.plans), layout.width)
        given = {"start": self.start if self.start is None else self.start.store, "held": self.held}
        for name, values in given.items():
            if values is not None and tuple(values.shape) != needed:
                raise InputError(
                    f"{name} has shape {tuple(values.shape)}; {needed[0]} members of this architecture need {needed}"
                )
        words = {(task.source_words, task.target_words) for task in self.tasks}
        if len(words) > 1:
            raise InputError("the members of one population need tasks with the same words; found several vocabularies")
        for task in self.tasks:
            missing = {TRAIN, SELECT_ON, *self.watched} - set(task.splits)
            if missing:
                raise InputError(
                    f"task {task.name} ({task.origin}) has no rows for {', '.join(sorted(missing))}; training needs {TRAIN}, "
                    f"selection needs {SELECT_ON}, and every watched split must have rows"
                )
        sizes = sorted({len(task.splits[TRAIN]) for task in self.tasks})
        if len(sizes) > 1:
            raise InputError(f"the members of one population need as many rows in {TRAIN} as each other; found {sizes}")
        if SELECT_ON not in self.watched:
            raise InputError(f"watched is {self.watched}; it must hold {SELECT_ON}, on which epochs are selected")


def _digest(values: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
