"""What a study must offer: a paper, presets, parts, claims, and how its results are made.

A module (or package) in this folder offers `STUDY`, a `Study`. The runner (`_runner.py`) does what all studies share: the
output folder and its resume rules, provenance, verdicts, and the files that outsiders read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from partwise.studies._claims import Claim

Results = Mapping[str, xr.Dataset]


@dataclass(frozen=True)
class Settings:
    """What the caller asked for, checked. `groups` is how many processes share the work (fixed when a study starts)."""

    preset: str
    seed: int
    seeds: int
    device: str
    data_dir: Path | None
    checkpoint: Path | None
    parts: tuple[str, ...]
    groups: int

    @property
    def all_seeds(self) -> tuple[int, ...]:
        return tuple(range(self.seed, self.seed + self.seeds))


@dataclass(frozen=True)
class Part:
    """A piece of a study that can be computed by itself; `presets` are those that include it unless told otherwise."""

    name: str
    about: str
    presets: tuple[str, ...]


class Prepared:
    """A study with its data read and checked, before anything is written."""

    def describe(self) -> dict[str, Any]:
        """All that decides the results, as JSON: two calls with the same description may share a folder."""
        raise NotImplementedError

    def compute(self, part: str, out: Path) -> Results:
        """Compute one part (resuming what is half done in `out`) and return its labelled results, by name."""
        raise NotImplementedError


@dataclass(frozen=True)
class Study:
    """One paper. `presets` maps a preset's name to its number of seeds; `prepare` checks the caller's settings."""

    name: str
    title: str
    paper: str
    question: str
    method: str
    presets: Mapping[str, int]
    parts: Sequence[Part]
    claims: Sequence[Claim]
    prepare: Callable[[Settings], Prepared]
    takes_checkpoint: bool = False
