"""What a task must offer: examples with their derivation, in named splits, and what can be probed at each position.

A module in this folder offers `Options` (a frozen dataclass, checked when it is made) and `generate(options, seed)`, which
gives a `Task` (rows of source and target), a `Corpus` (running text) or `MinimalPairs`; where data was published as files, also
`read(folder)`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int

Label = str | int | None


@dataclass(frozen=True)
class Application:
    """One step of a derivation: the part at `source_position` turns `before` into `after`, written at `target_position`."""

    part: str
    source_position: int
    before: str
    after: str
    target_position: int


@dataclass(frozen=True)
class Example:
    """One row: words in, words out (the end mark not written), and how the one follows from the other.

    `alignment[t]` is the source position that output step t is about, the step that emits the end mark included.
    `probes` maps a label's name to one label a source position (None: nothing to ask there); a decoder step
    carries the labels of the source position that it is aligned with.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[int, ...]
    derivation: tuple[Application, ...]
    probes: Mapping[str, tuple[Label, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)  # a task is compared and hashed by identity: its content has a fingerprint
class Task:
    """A task ready to use: the words of both sides, and the examples of every split."""

    name: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    splits: Mapping[str, Sequence[Example]]
    origin: str
    """Where the examples came from: "generated, seed 3", or the folder they were read from."""

    def fingerprint(self) -> str:
        """SHA-256 over every row of every split, in order: equal data, equal fingerprint, on every platform."""
        digest = hashlib.sha256()
        for split in sorted(self.splits):
            for row in self.splits[split]:
                columns = (split, " ".join(row.source), " ".join(row.target), " ".join(map(str, row.alignment)))
                digest.update(("\t".join(columns) + "\n").encode())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Corpus:
    """Running text ready to use, as ids (a word's id is its place in `words`).

    `streams` are long texts, by split. `windows` are short ones of equal length to look at, (window, time).
    `spans` is how a stream came about: by split, the place and kind of everything in it that was put there by rule.
    `facts` holds what was counted in the finished text: what was asked for is not always what one gets.
    """

    name: str
    words: tuple[str, ...]
    streams: Mapping[str, Int[np.ndarray, " token"]]
    windows: Mapping[str, Int[np.ndarray, "window time"]]
    spans: Mapping[str, Mapping[str, Int[np.ndarray, " span"]]]
    facts: Mapping[str, int | float]
    origin: str

    def fingerprint(self) -> str:
        """SHA-256 over every stream and window: equal data, equal fingerprint, on every platform."""
        digest = hashlib.sha256("\n".join(self.words).encode())
        for texts in (self.streams, self.windows):
            for split in sorted(texts):
                digest.update(f"{split} {texts[split].shape}".encode())
                digest.update(np.ascontiguousarray(texts[split], "<i4").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class MinimalPair:
    """The beginning of a sentence, and two words that may come next, of which one is right.

    `positions` says where the parts stand on which the choice depends (`subject`) or must not depend (`noun`).
    """

    words: tuple[str, ...]
    right: str
    wrong: str
    condition: str
    positions: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class MinimalPairs:
    """Pairs of sentences that differ in one word, in named tasks; every pair belongs to a condition."""

    name: str
    splits: Mapping[str, Sequence[MinimalPair]]
    origin: str

    @property
    def words(self) -> tuple[str, ...]:
        """Every word that a model must know."""
        pairs = [pair for split in self.splits.values() for pair in split]
        return tuple(sorted({word for pair in pairs for word in (*pair.words, pair.right, pair.wrong)}))

    def fingerprint(self) -> str:
        """SHA-256 over every pair of every task, in order."""
        digest = hashlib.sha256()
        for split in sorted(self.splits):
            for pair in self.splits[split]:
                columns = (split, " ".join(pair.words), pair.right, pair.wrong, pair.condition)
                digest.update(("\t".join(columns) + "\n").encode())
        return digest.hexdigest()
