"""The study's parts by name, and the study with its recipe checked."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from partwise.errors import InputError
from partwise.studies._contract import Part, Prepared, Results, Settings
from partwise.studies.long_range_rules import parts
from partwise.studies.long_range_rules.recipe import Recipe

BOTH, PAPER = ("quick", "paper"), ("paper",)
PARTS = (
    Part("frequency", "how many examples a rule needs (Figure 1)", BOTH),
    Part("interaction", "the open symbol with more and more of the conduit (Figure 2)", BOTH),
    Part("predictability", "conduits that are seen elsewhere, or are not (Figure 3)", BOTH),
    Part("flow", "the gradient that comes back through the conduit (introduction)", BOTH),
    Part("meaning", "decompositions tried out by replacing words", BOTH),
    Part("optimiser", "momentum and weight decay (section 3)", PAPER),
    Part("fault", "the reported fault of the public generator", PAPER),
)
_COMPUTE = {part.name: getattr(parts, part.name) for part in PARTS}


def prepare(settings: Settings) -> Prepared:
    if settings.data_dir is not None:
        raise InputError("--data-dir: this study generates its corpora from seeds and reads none; leave it out")
    return LongRangeRules(settings)


class LongRangeRules(Prepared):
    def __init__(self, settings: Settings) -> None:
        self.recipe = Recipe(settings)

    def describe(self) -> dict[str, Any]:
        return {"recipe": asdict(self.recipe.preset), "data": "generated from the seeds; each run notes its corpora's hashes"}

    def compute(self, part: str, out: Path) -> Results:
        return _COMPUTE[part](self.recipe, out)
