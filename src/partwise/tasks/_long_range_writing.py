"""Two ways to write rules and copies of conduits into a corpus: one that keeps them whole, and the reported one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from partwise.randomness import generator

if TYPE_CHECKING:
    from partwise.tasks.long_range_rules import Options


@dataclass(frozen=True)
class Written:
    """The corpus, and where its rules and copies were put (with a fault: where they were meant to be)."""

    tokens: Int[np.ndarray, " token"]
    rules: Int[np.ndarray, " rule"]
    conduit_of_rule: Int[np.ndarray, " rule"]
    copies: Int[np.ndarray, " copy"]


def write(options: Options, conduits: np.ndarray, conduit_of_rule: np.ndarray, seed: int) -> Written:
    """Shuffle rules, copies and single words, and write them one after the other."""
    copies = options.copies * len(conduits)
    singles = options.tokens - options.needed
    lengths = np.repeat([options.rule, options.conduit, 1], [options.occurrences, copies, singles])
    order = generator(seed, "places").permutation(len(lengths))
    starts = np.empty(len(lengths), np.int64)
    starts[order] = np.concatenate(([0], np.cumsum(lengths[order])[:-1]))
    rules, copied, _ = np.split(starts, [options.occurrences, options.occurrences + copies])
    tokens = generator(seed, "words").integers(options.types, size=options.tokens, dtype=np.int32)
    inside = np.arange(options.conduit)
    tokens[rules], tokens[rules + options.rule - 1] = options.open_id, options.close_id
    tokens[rules[:, None] + 1 + inside] = conduits[conduit_of_rule]
    if copies:
        tokens[copied[:, None] + inside] = np.repeat(conduits, options.copies, axis=0)
    return Written(tokens, rules, conduit_of_rule, copied)


def write_with_fault(options: Options, conduits: np.ndarray, conduit_of_rule: np.ndarray, seed: int) -> Written:
    """As the public generator writes (github.com/nsaphra/acd, 2019): conduits two words too long go into slices that are one or
    two words too short, so that the corpus grows under the places drawn beforehand, and later writes land on earlier rules.
    """
    long_conduits = np.concatenate((conduits, _two_more(options, len(conduits), seed)), axis=1).tolist()
    per_rule = options.copies * options.conduits // options.occurrences
    places = generator(seed, "places").permutation(options.tokens // options.rule)[: options.occurrences * (1 + per_rule)]
    drawn = (places * options.rule).reshape(options.occurrences, 1 + per_rule).tolist()
    tokens = generator(seed, "words").integers(options.types, size=options.tokens, dtype=np.int32).tolist()
    for number, (begin, *copies) in zip(conduit_of_rule, drawn, strict=True):
        end = begin + options.rule - 1
        tokens[begin] = options.open_id
        tokens[begin + 1 : end] = long_conduits[number]
        tokens[end] = options.close_id
        for copy in copies:
            tokens[copy : copy + options.rule - 1] = long_conduits[number]
    meant = np.array(drawn)
    return Written(np.array(tokens, np.int32), meant[:, 0], conduit_of_rule, meant[:, 1:].reshape(-1))


def _two_more(options: Options, rows: int, seed: int) -> np.ndarray:
    return generator(seed, "surplus").integers(options.types, size=(rows, 2), dtype=np.int32)
