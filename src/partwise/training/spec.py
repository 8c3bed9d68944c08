"""What a run computes: everything that decides its numbers, checked before anything is written."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from partwise.errors import InputError
from partwise.models._contract import Architecture
from partwise.population import Layout
from partwise.tasks._contract import Task
from partwise.training import checkpoint
from partwise.training.config import MemberPlan, TrainingConfig

TRAIN, SELECT_ON = "train", "validation"


@dataclass(frozen=True)
class RunSpec:
    """Everything that decides what a run computes. `watched` splits are evaluated each epoch, all others at the end."""

    architecture: Architecture
    plans: tuple[MemberPlan, ...]
    tasks: tuple[Task, ...]
    config: TrainingConfig
    watched: tuple[str, ...]
    device: str = "cpu"

    def describe(self) -> dict[str, Any]:
        return {
            "architecture": checkpoint.describe(self.architecture),
            "plans": [dataclasses.asdict(plan) for plan in self.plans],
            "data": [{"origin": task.origin, "fingerprint": task.fingerprint()} for task in self.tasks],
            "config": dataclasses.asdict(self.config) | {"keep_epochs": list(self.config.keep_epochs)},
            "watched": list(self.watched),
            "device": self.device,
        }

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
            layout.select(plan.frozen)
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
