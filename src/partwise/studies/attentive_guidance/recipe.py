"""Which models the study trains, and on what.

The published recipe is declared here, before any result: GRU, pre-rnn attention with full focus, all parameters drawn
from U(-.08, .08), no teacher forcing, Adam at .001, gradient clip 5, batch 1, 100 epochs, hidden size 512, encoder
embedding 16.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from partwise.errors import InputError
from partwise.models.seq2seq import Seq2Seq
from partwise.population import Member
from partwise.studies._contract import Part, Prepared, Results, Settings
from partwise.studies.attentive_guidance import collect
from partwise.tasks import lookup_tables
from partwise.tasks._contract import Task
from partwise.tasks._encoding import Vocabulary
from partwise.training.config import MemberPlan, TrainingConfig
from partwise.training.schedule import split_evenly, train_all
from partwise.training.spec import RunSpec

ARMS = {"baseline": 0.0, "guided": 1.0}  # the weight of the attention loss
PUBLISHED_SAMPLES = 5
WATCHED = ("validation", "heldout_compositions", "heldout_inputs", "heldout_tables", "new_compositions")
PARTS = (
    Part("behaviour", "both arms under the published recipe (Tables 5 and 6)", ("quick", "paper")),
    Part("spread", "the seed varied on one split, and the split varied under one seed", ("paper",)),
    Part("sensitivity", "both arms with full focus, initialisation and teacher forcing varied", ("paper",)),
)


@dataclass(frozen=True)
class Preset:
    hidden: int
    batch_size: int
    epochs: int
    seeds: int
    keep_epochs: tuple[int, ...]


PRESETS = {
    "quick": Preset(hidden=128, batch_size=8, epochs=80, seeds=3, keep_epochs=(0, 1, 2, 5, 10, 20, 40)),
    "paper": Preset(hidden=512, batch_size=1, epochs=100, seeds=5, keep_epochs=(0, 1, 2, 5, 10, 20, 40)),
}


@dataclass(frozen=True)
class Cell:
    """One way to train: what the sensitivity grid varies. The default is the published recipe."""

    full_focus: bool = True
    initialisation: str = "uniform"
    teacher_forcing: float = 0.0


PUBLISHED = Cell()
GRID = tuple(Cell(*way) for way in itertools.product((True, False), ("uniform", "pytorch"), (0.0, 1.0)))


def prepare(settings: Settings) -> AttentiveGuidance:
    return AttentiveGuidance(settings)


class AttentiveGuidance(Prepared):
    """The study with its data read. Seed i belongs with split i: one of the published samples, or one drawn from seed i."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.preset = settings, PRESETS[settings.preset]
        if "spread" in settings.parts and settings.seeds < 2:
            parts = ",".join(part for part in settings.parts if part != "spread")
            raise InputError(
                f"part spread compares seeds and needs --seeds 2 or more; else leave it out: --parts {parts or 'behaviour'}"
            )
        self.tasks = {seed: self._task(seed) for seed in settings.all_seeds}
        self._spec(PUBLISHED, tuple(self._diagonal(PUBLISHED))).check()

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

    def describe(self) -> dict[str, Any]:
        return {
            "recipe": asdict(self.preset),
            "data": {str(seed): f"{task.origin}: {task.fingerprint()}" for seed, task in self.tasks.items()},
        }

    def compute(self, part: str, out: Path) -> Results:
        runs = out / "runs"
        if part == "behaviour":
            return collect.behaviour(self._train(part, runs, PUBLISHED, self._diagonal(PUBLISHED)), self.tasks)
        if part == "spread":
            star = self._train(part, runs, PUBLISHED, self._star()).final()
            return {"spread": xr.concat([self._centre(runs), star], "member")}
        grid = [self._cell(cell, runs) for cell in GRID]
        return {"sensitivity": xr.concat(grid, "member")}

    def _cell(self, cell: Cell, runs: Path) -> xr.Dataset:
        """One cell of the grid; the published one is the behavioural part, which is not trained twice."""
        name = "behaviour" if cell == PUBLISHED else f"sensitivity-{cell_name(cell)}"
        return collect.labelled(self._train(name, runs, cell, self._diagonal(cell)).final(), asdict(cell))

    def _diagonal(self, cell: Cell) -> list[MemberPlan]:
        """Seed i with split i, in both arms."""
        return [self._plan(arm, seed, seed, cell) for seed in self.settings.all_seeds for arm in ARMS]

    def _centre(self, runs: Path) -> xr.Dataset:
        """The first seed on its own split: trained as part of the behaviour already."""
        final = self._train("behaviour", runs, PUBLISHED, self._diagonal(PUBLISHED)).final()
        return final.sel(member=final.seed == self.settings.seed)

    def _star(self) -> list[MemberPlan]:
        """From the first seed and split: every other seed on that split, and every other split under that seed."""
        first, *others = self.settings.all_seeds
        splits = {task.fingerprint(): seed for seed, task in reversed(self.tasks.items())}  # published samples come round again
        pairs = [*((seed, first) for seed in others), *((first, split) for split in sorted(splits.values()) if split != first)]
        return [self._plan(arm, seed, split, PUBLISHED) for seed, split in pairs for arm in ARMS]

    def _plan(self, arm: str, seed: int, split: int, cell: Cell) -> MemberPlan:
        name = f"{arm}-{seed}" if seed == split else f"{arm}-{seed}-split-{split}"
        return MemberPlan(
            member=Member(name, seed, {"arm": arm, "split_seed": split}),
            guidance=ARMS[arm],
            teacher_forcing=cell.teacher_forcing,
            initialisation=cell.initialisation,
        )

    def _train(self, name: str, runs: Path, cell: Cell, plans: Sequence[MemberPlan]) -> collect.Trained:
        groups = split_evenly(plans, self.settings.groups)
        specs = {runs / f"{name}-{k + 1}-of-{len(groups)}": self._spec(cell, group) for k, group in enumerate(groups)}
        train_all(specs, self.settings.groups, f"{name} ({len(plans)} models)")
        return collect.Trained(list(specs))

    def _spec(self, cell: Cell, plans: tuple[MemberPlan, ...]) -> RunSpec:
        tasks = tuple(self.tasks[int(plan.member.labels["split_seed"])] for plan in plans)
        architecture = Seq2Seq(
            source_words=len(Vocabulary.source(tasks[0])),
            target_words=len(Vocabulary.target(tasks[0])),
            hidden=self.preset.hidden,
            full_focus=cell.full_focus,
        )
        config = TrainingConfig(
            epochs=self.preset.epochs,
            batch_size=self.preset.batch_size,
            keep_epochs=self.preset.keep_epochs if cell == PUBLISHED else (),
        )
        return RunSpec(architecture, plans, tasks, config, WATCHED, self.settings.device)


def cell_name(cell: Cell) -> str:
    focus = "focus" if cell.full_focus else "no-focus"
    return f"{focus}-{cell.initialisation}-forcing-{cell.teacher_forcing:g}"
