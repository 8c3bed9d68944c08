"""Rules over a distance: an open symbol, a conduit of k words, a close symbol (Saphra and Lopez 2020).

A corpus of words drawn uniformly holds n such rules. Settings:
- `random`: every rule has a conduit of its own, drawn anew.
- `unpredictable`: the conduits come from a list of 100, so that each is in n / 100 rules, and nowhere else but by chance.
- `predictable`: the same, and each conduit is written m times more outside the rules.
- `reported-fault`: as predictable, but written as the public generator does (see `_long_range_writing`), which destroys rules.

1. Rules, copies and single words are shuffled and written one after the other: nothing overlaps, nothing is lost.
2. Whatever was asked for is counted in the finished corpus; what the corpus cannot hold is refused.
3. Two kinds of windows to look at: a rule at the end of a window of 35 words, with a conduit that no rule of the training
   corpus has (`unseen`), or with one that some rule has (`seen`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from partwise.errors import InputError, unknown
from partwise.randomness import generator
from partwise.tasks._contract import Corpus
from partwise.tasks._long_range_counts import count
from partwise.tasks._long_range_writing import write, write_with_fault

SETTINGS = ("random", "unpredictable", "predictable", "reported-fault")
OPEN, CLOSE = "(", ")"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Sizes; the defaults are the paper's. `copies` is how often each conduit is written outside rules (m)."""

    conduit: int = 8
    occurrences: int = 1000
    setting: str = "unpredictable"
    conduits: int = 100
    copies: int = 0
    tokens: int = 1_000_000
    types: int = 1000
    validation_tokens: int = 50_000
    windows: int = 200
    window: int = 35

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise InputError.of(faults)

    @property
    def rule(self) -> int:
        """Words of a rule, both symbols included."""
        return self.conduit + 2

    @property
    def open_id(self) -> int:
        return self.types

    @property
    def close_id(self) -> int:
        return self.types + 1

    @property
    def needed(self) -> int:
        """How many words the rules and the copies take."""
        if self.setting == "reported-fault":  # it writes everything on a grid as wide as a rule
            return self.rule * (self.occurrences + self.conduits * self.copies)
        return self.rule * self.occurrences + self.conduit * self.conduits * self.copies

    def _faults(self) -> Iterable[str]:
        if self.setting not in SETTINGS:
            yield str(unknown("setting", self.setting, SETTINGS))
        for name in ("conduit", "occurrences", "conduits", "types", "validation_tokens", "windows"):
            if getattr(self, name) < 1:
                yield f"{name} is {getattr(self, name)}; it must be 1 or more"
        if self.copies < 0:
            yield f"copies is {self.copies}; it must be 0 or more"
        wants_copies = self.setting in ("predictable", "reported-fault")
        if wants_copies != bool(self.copies):
            yield f"copies is {self.copies} in setting {self.setting!r}; " + (
                "say how often each conduit is copied" if wants_copies else "only predictable conduits have copies"
            )
        if self.setting != "random" and self.occurrences % self.conduits:
            yield f"occurrences is {self.occurrences}; {self.conduits} conduits share them evenly, so give a multiple of that"
        if self.window < self.rule + 1 or self.window > self.validation_tokens:
            yield f"window is {self.window}; a rule and a word before it need {self.rule + 1}; validation_tokens is the most"
        if self.needed > self.tokens:
            yield (
                f"tokens is {self.tokens:,}; {self.occurrences:,} rules over {self.conduit} words and "
                f"{self.conduits * self.copies:,} copies need {self.needed:,}"
            )


def generate(options: Options | None = None, seed: int = 0) -> Corpus:
    """A corpus drawn from a seed. Equal seeds share conduits and windows across settings as far as they can."""
    options = options or Options()
    conduits = _conduits(options, seed)
    per_rule = np.arange(options.occurrences) % len(conduits)
    writer = write_with_fault if options.setting == "reported-fault" else write
    written = writer(options, conduits, per_rule, seed)
    unseen = _unseen(conduits, options, generator(seed, "unseen conduits", options.conduit))
    seen = conduits[generator(seed, "seen conduits").integers(len(conduits), size=options.windows)]
    return Corpus(
        name="long-range-rules",
        words=(*map(str, range(options.types)), OPEN, CLOSE),
        streams={"train": written.tokens, "validation": _validation(options, seed)},
        windows={"unseen": _windows(options, unseen, seed), "seen": _windows(options, seen, seed)},
        spans={"train": {"rule": written.rules, "conduit": written.conduit_of_rule, "copy": written.copies}},
        facts=count(options, conduits, written),
        origin=f"generated, seed {seed}",
    )


def _conduits(options: Options, seed: int) -> np.ndarray:
    number = options.occurrences if options.setting == "random" else options.conduits
    random = generator(seed, "conduits", options.conduit, number)
    return random.integers(options.types, size=(number, options.conduit), dtype=np.int32)


def _unseen(conduits: np.ndarray, options: Options, random: np.random.Generator) -> np.ndarray:
    """Conduits of which no rule has any; where every possible one is in use, there is none to be had."""
    known = {tuple(conduit) for conduit in conduits.tolist()}
    if len(known) >= options.types**options.conduit:
        raise InputError(f"{len(known)} conduits of {options.conduit} words are all there are of {options.types} types")
    found: list[np.ndarray] = []
    while len(found) < options.windows:
        drawn = random.integers(options.types, size=options.conduit, dtype=np.int32)
        if tuple(drawn.tolist()) not in known:
            found.append(drawn)
    return np.stack(found)


def _windows(options: Options, conduits: np.ndarray, seed: int) -> np.ndarray:
    """Random words, then a rule that ends the window. The words before it are the same for seen and unseen conduits."""
    words = generator(seed, "before the rule").integers(options.types, size=(options.windows, options.window), dtype=np.int32)
    words[:, -1], words[:, -options.rule] = options.close_id, options.open_id
    words[:, -options.conduit - 1 : -1] = conduits
    return words


def _validation(options: Options, seed: int) -> np.ndarray:
    """One rule in every block as long as a window, at a random place in it, with a random conduit."""
    random = generator(seed, "validation")
    tokens = random.integers(options.types, size=options.validation_tokens, dtype=np.int32)
    blocks = options.validation_tokens // options.window
    starts = np.arange(blocks) * options.window + random.integers(options.window - options.rule + 1, size=blocks)
    tokens[starts], tokens[starts + options.rule - 1] = options.open_id, options.close_id
    return tokens
