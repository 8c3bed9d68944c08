"""Which models the study trains, and on what.

The published recipe is declared here, before any result: GRU, pre-rnn attention with full focus, all parameters drawn
from U(-.08, .08), no teacher forcing, Adam at .001, gradient clip 5, batch 1, 100 epochs, hidden size 512, encoder
embedding 16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from partwise.errors import InputError
from partwise.models.seq2seq import Seq2Seq
from partwise.population import Member, Population
from partwise.studies._contract import Settings
from partwise.studies._trained import Trained
from partwise.tasks import lookup_tables
from partwise.tasks._contract import Example, Task
from partwise.tasks._encoding import Vocabulary
from partwise.training.config import MemberPlan, TrainingConfig
from partwise.training.rows.spec import RunSpec
from partwise.training.schedule import split_evenly, train_all

ARMS = {"baseline": 0.0, "guided": 1.0}  # the weight of the attention loss
PUBLISHED_SAMPLES = 5
WATCHED = ("validation", "heldout_compositions", "heldout_inputs", "heldout_tables", "new_compositions")


@dataclass(frozen=True)
class Preset:
    """Sizes. `pairs` is how many donor-host pairs a transplanted component is tried on, `retrained` for how many epochs."""

    hidden: int
    batch_size: int
    epochs: int
    seeds: int
    keep_epochs: tuple[int, ...]
    components: tuple[str, ...]
    directions: tuple[str, ...]
    pairs: int
    retrained: int
    pruned_retrained: int


COMPONENTS = {
    "encoder": ("encoder",),
    "encoder embedding": ("encoder.embedding",),
    "encoder input": ("encoder.input",),
    "encoder recurrent": ("encoder.recurrent",),
    "decoder": ("decoder", "attention", "focus"),
    "decoder embedding": ("decoder.embedding",),
    "decoder input": ("decoder.input",),
    "decoder recurrent": ("decoder.recurrent",),
}
"""The eight components of Table 4. The decoder is the published code's module of that name, attention and output included; W_ih
and W_hh go with their biases."""
DIRECTIONS = {"guided": "baseline", "baseline": "guided"}  # the arm of the host, and that of the donor
KEPT = (0, 1, 2, 5, 10, 20, 40)
PRESETS = {
    "quick": Preset(
        hidden=128, batch_size=8, epochs=80, seeds=5, keep_epochs=KEPT,
        components=("encoder", "decoder"), directions=("guided",), pairs=5, retrained=15, pruned_retrained=15,
    ),
    "paper": Preset(
        hidden=512, batch_size=1, epochs=100, seeds=5, keep_epochs=KEPT,
        components=tuple(COMPONENTS), directions=tuple(DIRECTIONS), pairs=16, retrained=100, pruned_retrained=20,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One way to train: what the sensitivity grid varies, and the kind of recurrence. The default is the published recipe."""

    full_focus: bool = True
    initialisation: str = "uniform"
    teacher_forcing: float = 0.0
    cell: str = "gru"


PUBLISHED = Cell()


class Recipe:
    """The study's data, read and checked, and the training of any of its populations.

    Seed i belongs with split i: one of the published samples, or one drawn from seed i.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.preset = settings, PRESETS[settings.preset]
        self.tasks = {seed: self._task(seed) for seed in settings.all_seeds}
        self.spec(PUBLISHED, tuple(self.both_arms(PUBLISHED))).check()

    def _task(self, seed: int) -> Task:
        if self.settings.data_dir is None:
            return lookup_tables.generate(lookup_tables.Options(tables_from="published"), seed)
        folder = self.settings.data_dir / "lookup"
        if not folder.is_dir():
            raise InputError(
                f"--data-dir {self.settings.data_dir} has no folder lookup/ with sample1 to sample{PUBLISHED_SAMPLES}; "
                "leave --data-dir out to generate splits with the published tables and sizes"
            )
        return lookup_tables.read(folder / f"sample{seed % PUBLISHED_SAMPLES + 1}")

    def plan(self, arm: str, seed: int, split: int, cell: Cell = PUBLISHED) -> MemberPlan:
        name = f"{arm}-{seed}" if seed == split else f"{arm}-{seed}-split-{split}"
        if cell != PUBLISHED:
            name += f"-{cell_name(cell)}"
        labels: dict[str, str | int | float] = {"arm": arm, "split_seed": split}
        labels |= {"full_focus": "yes" if cell.full_focus else "no"}
        labels |= {"initialisation": cell.initialisation, "teacher_forcing": cell.teacher_forcing, "cell": cell.cell}
        return MemberPlan(
            member=Member(name, seed, labels),
            guidance=ARMS[arm],
            teacher_forcing=cell.teacher_forcing,
            initialisation=cell.initialisation,
        )

    def both_arms(self, cell: Cell) -> list[MemberPlan]:
        """Seed i with split i, in both arms."""
        return [self.plan(arm, seed, seed, cell) for seed in self.settings.all_seeds for arm in ARMS]

    def behaviour(self, out: Path) -> Trained:
        """Both arms under the published recipe: what every other part looks at."""
        return self.train("behaviour", out, PUBLISHED, self.both_arms(PUBLISHED))

    def train(self, name: str, out: Path, cell: Cell, plans: Sequence[MemberPlan], **changes: Any) -> Trained:
        """Train members of one architecture, as many runs at a time as there are processes."""
        groups = split_evenly(plans, self.settings.groups)
        specs = {}
        for number, group in enumerate(groups):
            specs[out / "runs" / f"{name}-{number + 1}-of-{len(groups)}"] = self.spec(cell, group, **changes)
        train_all(specs, self.settings.groups, f"{name} ({len(plans)} models)")
        return Trained(list(specs), self.settings.device)

    def retrain(self, name: str, out: Path, start: Population, plans: Sequence[MemberPlan], **changes: Any) -> Trained:
        """Train on from given weights; only accuracies are kept. `held` marks numbers that must not move."""
        held: np.ndarray | None = changes.pop("held", None)
        places = {plan.member.name: row for row, plan in enumerate(plans)}
        groups = split_evenly(plans, max(self.settings.groups, -(-len(plans) // _AT_ONCE)))
        specs = {}
        for number, group in enumerate(groups):
            rows = [places[plan.member.name] for plan in group]
            members = [plan.member for plan in group]
            part = Population(start.architecture, members, start.store[rows], start.words)
            more: dict[str, Any] = {"start": part, "held": None if held is None else held[rows], "keep_weights": False}
            specs[out / "runs" / f"{name}-{number + 1}-of-{len(groups)}"] = self.spec(PUBLISHED, group, **changes, **more)
        train_all(specs, self.settings.groups, f"{name} ({len(plans)} models)")
        return Trained(list(specs), self.settings.device)

    def spec(
        self,
        cell: Cell,
        plans: tuple[MemberPlan, ...],
        *,
        hidden: int | None = None,
        epochs: int | None = None,
        keep_weights: bool = True,
        **more: Any,
    ) -> RunSpec:
        tasks = tuple(self.tasks[int(plan.member.labels["split_seed"])] for plan in plans)
        architecture = Seq2Seq(
            source_words=len(Vocabulary.source(tasks[0])),
            target_words=len(Vocabulary.target(tasks[0])),
            hidden=hidden or self.preset.hidden,
            full_focus=cell.full_focus,
            cell=cell.cell,
        )
        plain = cell == PUBLISHED and keep_weights and hidden is None
        config = TrainingConfig(
            epochs=epochs or self.preset.epochs,
            batch_size=self.preset.batch_size,
            keep_epochs=tuple(e for e in self.preset.keep_epochs if e <= self.preset.epochs) if plain else (),
            keep_weights=keep_weights,
        )
        return RunSpec(architecture, plans, tasks, config, WATCHED, self.settings.device, **more)

    def every_composition(self) -> list[Example]:
        """Every composition of two tables on every input: the same rows whatever the split, in one order."""
        return compositions(self.tasks[self.settings.seed])


_AT_ONCE = 128  # members of one retrained population: what fits a GPU's memory with room to spare


def compositions(task: Task, splits: Sequence[str] | None = None) -> list[Example]:
    """The rows of two tables of some splits (default: all), sorted."""
    rows: Mapping[tuple[str, ...], Example] = {
        row.source: row for split in splits or task.splits for row in task.splits[split] if len(row.derivation) == 2
    }
    return [rows[source] for source in sorted(rows)]


def cell_name(cell: Cell) -> str:
    focus = "focus" if cell.full_focus else "no-focus"
    kind = "" if cell.cell == "gru" else f"{cell.cell}-"
    return f"{kind}{focus}-{cell.initialisation}-forcing-{cell.teacher_forcing:g}"
