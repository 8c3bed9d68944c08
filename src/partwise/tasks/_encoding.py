"""From words to numbers: vocabularies, and one split as padded arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int64

from partwise.errors import InputError
from partwise.tasks._contract import Example, Task

PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<sos>", "<eos>"
PAD_ID, UNKNOWN_ID, START_ID, END_ID = range(4)  # in a target vocabulary; a source vocabulary has the first two


@dataclass(frozen=True)
class Vocabulary:
    """The words of one side; a word's id is its place. Saved with every checkpoint, so that rows carry their words."""

    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Sequence[str]) -> list[int]:
        """Ids of words; a word that is not in the vocabulary is an error, never silently <unk>."""
        known = {word: i for i, word in enumerate(self.words)}
        strange = sorted({word for word in words if word not in known})
        if strange:
            raise InputError(f"not in the vocabulary: {', '.join(strange)}; its words are {' '.join(self.words)}")
        return [known[word] for word in words]

    @classmethod
    def source(cls, task: Task) -> Vocabulary:
        return cls((PAD, UNKNOWN, *task.source_words))

    @classmethod
    def target(cls, task: Task) -> Vocabulary:
        return cls((PAD, UNKNOWN, START, END, *task.target_words))


@dataclass(frozen=True)
class Encoded:
    """Rows as arrays. The target ends with <eos>; `alignment[row, t]` is a distribution over source positions."""

    source: Int64[np.ndarray, "row source_time"]
    source_length: Int64[np.ndarray, " row"]
    target: Int64[np.ndarray, "row target_time"]
    target_length: Int64[np.ndarray, " row"]
    alignment: Float32[np.ndarray, "row target_time source_time"]


def encode(examples: Sequence[Example], source: Vocabulary, target: Vocabulary) -> Encoded:
    """Pad to the longest row. An output step without an alignment (index -1) gets a row of zeros: no guidance there."""
    sources = [source.ids(example.source) for example in examples]
    targets = [target.ids((*example.target, END)) for example in examples]
    widest, longest = max(map(len, sources)), max(map(len, targets))
    alignment = np.zeros((len(examples), longest, widest), np.float32)
    for i, example in enumerate(examples):
        for t, position in enumerate(example.alignment):
            if position >= 0:
                alignment[i, t, position] = 1.0
    return Encoded(_padded(sources, widest), _lengths(sources), _padded(targets, longest), _lengths(targets), alignment)


def _padded(rows: list[list[int]], width: int) -> Int64[np.ndarray, "row time"]:
    return np.array([row + [0] * (width - len(row)) for row in rows], np.int64)


def _lengths(rows: list[list[int]]) -> Int64[np.ndarray, " row"]:
    return np.array([len(row) for row in rows], np.int64)
