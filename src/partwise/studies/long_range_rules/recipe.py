"""Which models the study trains, and on what.

Declared here, before any result: one LSTM layer, plain gradient descent without momentum or decay, the state carried on,
weights drawn as PyTorch's example of a language model draws them. Seed i belongs with corpus i of every condition.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from partwise.models.language_model import LanguageModel
from partwise.population import Member
from partwise.studies._contract import Settings
from partwise.studies._trained import Trained
from partwise.tasks import long_range_rules
from partwise.tasks._contract import Corpus
from partwise.training.schedule import split_evenly, train_all
from partwise.training.streams.spec import StreamConfig, StreamPlan, StreamSpec


@dataclass(frozen=True)
class Condition:
    """What sets a model apart: its corpus, and how it is trained."""

    conduit: int
    occurrences: int
    setting: str = "random"
    copies: int = 0
    momentum: float = 0.0
    weight_decay: float = 0.0

    @property
    def name(self) -> str:
        more = f"-m{self.copies}" if self.copies else ""
        more += f"-momentum-{self.momentum:g}" if self.momentum else ""
        more += f"-decay-{self.weight_decay:g}" if self.weight_decay else ""
        return f"k{self.conduit}-n{self.occurrences}-{self.setting}{more}"


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Sizes. `conduits_tried` and `occurrences_tried` span the grid of Figure 1, shown after `shown_epoch`; the models of
    Figure 3 have `rules` rules with `conduits` conduits, each copied as often as `copies_tried` says.
    """

    types: int
    tokens: int
    validation_tokens: int
    width: int
    streams: int
    window: int
    learning_rate: float
    clip: float
    epochs: int
    shown_epoch: int
    keep_epochs: tuple[int, ...]
    seeds: int
    conduits_tried: tuple[int, ...]
    occurrences_tried: tuple[int, ...]
    conduits: int
    rules: int
    copies_tried: tuple[int, ...]
    conduits_predicted: tuple[int, ...]
    fault_copies: int
    momentum: float
    weight_decay: float
    optimised: tuple[int, int]
    windows: int
    test_window: int


PRESETS = {
    "quick": Preset(
        types=100, tokens=50_000, validation_tokens=4000, width=32, streams=10, window=20, learning_rate=2.0, clip=1.0,
        epochs=30, shown_epoch=30, keep_epochs=(0, 2, 4, 6, 8, 10, 12, 15, 18, 21, 24, 27, 30), seeds=5,
        conduits_tried=(2, 8), occurrences_tried=(10, 100, 1000),
        conduits=50, rules=500, copies_tried=(50,), conduits_predicted=(8,), fault_copies=90,
        momentum=0.9, weight_decay=1e-4, optimised=(8, 1000), windows=50, test_window=25,
    ),
    "paper": Preset(
        types=1000, tokens=1_000_000, validation_tokens=50_000, width=200, streams=20, window=35, learning_rate=1.0, clip=0.25,
        epochs=50, shown_epoch=40, keep_epochs=(0, *range(1, 11), *range(12, 21, 2), 25, 30, 35, 40, 45, 50), seeds=5,
        conduits_tried=(2, 4, 8), occurrences_tried=(10, 100, 1000, 10_000),
        conduits=100, rules=1000, copies_tried=(100, 1000), conduits_predicted=(2, 4, 8), fault_copies=990,
        momentum=0.9, weight_decay=1e-4, optimised=(4, 1000), windows=200, test_window=35,
    ),
}  # fmt: skip
ORDER = ("conduit", "setting", "copies", "occurrences", "momentum", "weight_decay")


class Recipe:
    """The study's corpora and the training of any of its populations."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.preset = settings, PRESETS[settings.preset]
        self.architecture = LanguageModel(words=self.preset.types + 2, embedding=self.preset.width, hidden=self.preset.width)
        self.corpus = cache(self._corpus)
        for condition in (*self.grid(), *self.predictability(), self.fault(), *self.optimised()):
            self.options(condition)  # what a corpus cannot hold is refused now

    def grid(self) -> list[Condition]:
        """Figure 1: every conduit length with every number of rules."""
        tried = itertools.product(self.preset.conduits_tried, self.preset.occurrences_tried)
        return [Condition(conduit, occurrences) for conduit, occurrences in tried]

    def predictability(self) -> list[Condition]:
        """Figure 3: conduits from a list, seen in rules only, or copied outside them."""
        rules = self.preset.rules
        return [
            condition
            for conduit in self.preset.conduits_predicted
            for condition in (
                Condition(conduit, rules, "unpredictable"),
                *(Condition(conduit, rules, "predictable", copies) for copies in self.preset.copies_tried),
            )
        ]

    def fault(self) -> Condition:
        return Condition(max(self.preset.conduits_predicted), self.preset.rules, "reported-fault", self.preset.fault_copies)

    def optimised(self) -> list[Condition]:
        """One cell of the grid, with momentum and with weight decay."""
        conduit, occurrences = self.preset.optimised
        return [
            Condition(conduit, occurrences, momentum=self.preset.momentum),
            Condition(conduit, occurrences, weight_decay=self.preset.weight_decay),
        ]

    def options(self, condition: Condition) -> long_range_rules.Options:
        preset = self.preset
        return long_range_rules.Options(
            conduit=condition.conduit, occurrences=condition.occurrences, setting=condition.setting, copies=condition.copies,
            conduits=preset.conduits, tokens=preset.tokens, types=preset.types, validation_tokens=preset.validation_tokens,
            windows=preset.windows, window=preset.test_window,
        )  # fmt: skip

    def _corpus(self, condition: Condition, seed: int) -> Corpus:
        plain = Condition(condition.conduit, condition.occurrences, condition.setting, condition.copies)
        return self.corpus(plain, seed) if plain != condition else long_range_rules.generate(self.options(condition), seed)

    def train(self, name: str, out: Path, conditions: Sequence[Condition]) -> Trained:
        """Every condition under every seed, as many runs at a time as there are processes."""
        asked = [(condition, seed) for condition in conditions for seed in self.settings.all_seeds]
        groups = split_evenly(asked, self.settings.groups)
        specs = {}
        for number, group in enumerate(groups):
            specs[out / "runs" / f"{name}-{number + 1}-of-{len(groups)}"] = self._spec(group)
        train_all(specs, self.settings.groups, f"{name} ({len(asked)} models)")
        return Trained(list(specs), self.settings.device, ORDER)

    def _spec(self, group: Sequence[tuple[Condition, int]]) -> StreamSpec:
        preset = self.preset
        plans = tuple(
            StreamPlan(
                member=Member(f"{condition.name}-{seed}", seed, asdict(condition)),
                learning_rate=preset.learning_rate,
                momentum=condition.momentum,
                weight_decay=condition.weight_decay,
            )
            for condition, seed in group
        )
        config = StreamConfig(
            epochs=preset.epochs, streams=preset.streams, window=preset.window, clip=preset.clip, keep_epochs=preset.keep_epochs
        )
        corpora = tuple(self.corpus(condition, seed) for condition, seed in group)
        return StreamSpec(self.architecture, plans, corpora, config, self.settings.device)

    def corpus_of(self, member: Member) -> Corpus:
        """What a member was trained on."""
        labels: dict[str, Any] = dict(member.labels)
        return self.corpus(Condition(**labels), member.seed)
