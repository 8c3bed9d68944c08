"""The study's parts by name, and the study with its data read."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from partwise.errors import InputError
from partwise.studies._contract import Part, Prepared, Results, Settings
from partwise.studies.attentive_guidance.parts import behaviour, emergence, groups, inside, pruning, substitution
from partwise.studies.attentive_guidance.recipe import Recipe

BOTH, PAPER = ("quick", "paper"), ("paper",)
PARTS = (
    Part("behaviour", "both arms under the published recipe (Tables 5 and 6)", BOTH),
    Part("weights", "decoder embedding, strong weights as a graph, polarity (Figures 1 and 2)", BOTH),
    Part("activations", "activation ranges and gate saturation (Figures 3 and 4)", BOTH),
    Part("groups", "functional groups under the main rule, and of untrained models (Tables 2 and 3)", BOTH),
    Part("pruning", "the strongest 5 % of the units, against random units and small models", BOTH),
    Part("substitution", "parts of one arm frozen into the other (Table 4)", BOTH),
    Part("emergence", "groups and gates over the epochs of training", BOTH),
    Part("group-rules", "functional groups under every rule that the paper leaves open", PAPER),
    Part("lstm", "both arms with an LSTM in place of the GRU (footnote 1)", PAPER),
    Part("spread", "the seed varied on one split, and the split varied under one seed", PAPER),
    Part("sensitivity", "both arms with full focus, initialisation and teacher forcing varied", PAPER),
    Part("finer", "single gates, attention and focus frozen into the other arm", ()),
)
_COMPUTE = {
    "behaviour": behaviour.behaviour,
    "weights": inside.weights,
    "activations": inside.activations,
    "groups": groups.groups,
    "pruning": pruning.pruning,
    "substitution": substitution.substitution,
    "emergence": emergence.emergence,
    "group-rules": groups.rules,
    "lstm": behaviour.lstm,
    "spread": behaviour.spread,
    "sensitivity": behaviour.sensitivity,
    "finer": substitution.finer,
}


def prepare(settings: Settings) -> Prepared:
    if "spread" in settings.parts and settings.seeds < 2:
        parts = ",".join(part for part in settings.parts if part != "spread")
        raise InputError(
            f"part spread compares seeds and needs --seeds 2 or more; else leave it out: --parts {parts or 'behaviour'}"
        )
    return AttentiveGuidance(settings)


class AttentiveGuidance(Prepared):
    """The study with its data read and its recipe checked."""

    def __init__(self, settings: Settings) -> None:
        self.recipe = Recipe(settings)

    def describe(self) -> dict[str, Any]:
        return {
            "recipe": asdict(self.recipe.preset),
            "data": {str(seed): f"{task.origin}: {task.fingerprint()}" for seed, task in self.recipe.tasks.items()},
        }

    def compute(self, part: str, out: Path) -> Results:
        return _COMPUTE[part](self.recipe, out)
