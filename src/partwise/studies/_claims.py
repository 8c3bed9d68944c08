"""Claims and verdicts: one sentence of a paper made testable, and a rule that decides it from an interval over models.

A rule says which values of the quantity would bear the claim out. The verdict follows from the 95 % interval alone:
`replicated` if the whole interval lies inside, `not replicated` if it lies wholly outside, else `inconclusive`.
With fewer than five models preset `paper` never says `replicated`, with fewer than three preset `quick` does not; `quick`
leaves claims of size out (`not run`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from partwise.intervals import t_interval

FEWEST_MODELS = {"quick": 3, "paper": 5}  # with fewer, no claim is replicated
Values = Callable[[Mapping[str, xr.Dataset]], Sequence[float]]


@dataclass(frozen=True)
class Rule:
    """The claim holds for values above `low` (or at it, where `closed`) and up to `high`."""

    low: float = -math.inf
    high: float = math.inf
    closed: bool = False

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"95 % interval over models above {self.low:g}"
        if self.low == -math.inf:
            return f"95 % interval over models at or below {self.high:g}"
        return f"95 % interval over models within {self.low:g} to {self.high:g}"

    def verdict(self, interval: tuple[float, float]) -> str:
        low, high = interval
        if self._reaches(low) and high <= self.high:
            return "replicated"
        if not self._reaches(high) or low > self.high:
            return "not replicated"
        return "inconclusive"

    def _reaches(self, value: float) -> bool:
        return value >= self.low if self.closed else value > self.low


def above(bound: float) -> Rule:
    return Rule(low=bound)


def at_most(bound: float) -> Rule:
    return Rule(high=bound)


def near(published: float, margin: float) -> Rule:
    """Equivalence: the same value as published, up to a margin that we call small beforehand."""
    return Rule(low=round(published - margin, 6), high=round(published + margin, 6), closed=True)


@dataclass(frozen=True)
class Claim:
    """One testable sentence. `kind` is `direction` (which is larger) or `size` (how large); `part` is what it needs.

    `values` takes the results and gives one number a trained model, or one a pair of models.
    """

    id: str
    text: str
    published: float | None
    kind: str
    part: str
    rule: Rule
    values: Values

    def judge(self, study: str, preset: str, results: Mapping[str, xr.Dataset] | None) -> dict[str, Any]:
        """The row of claims.json. `results` is None where the part was not run."""
        row: dict[str, Any] = {
            "id": self.id,
            "study": study,
            "text": self.text,
            "published": self.published,
            "measured": None,
            "interval": None,
            "n": 0,
            "preset": preset,
            "rule": str(self.rule),
            "verdict": "not run",
            "kind": self.kind,
        }
        if results is None or (preset == "quick" and self.kind == "size"):
            return row
        measured = [float(value) for value in self.values(results)]
        if not measured:  # the part was run, but this preset leaves out what the claim is about
            return row
        values = [value for value in measured if np.isfinite(value)]  # a stopped member has no value
        interval = t_interval(values)
        row |= {"n": len(values), "values": values, "measured": float(np.mean(values)) if values else None}
        if interval is None:
            return row | {"verdict": "inconclusive"}
        verdict = self.rule.verdict(interval)
        if verdict == "replicated" and len(values) < FEWEST_MODELS[preset]:
            verdict = "inconclusive"
        return row | {"interval": list(interval), "verdict": verdict}
