"""What a finished corpus really holds: rules, copies of conduits, chance copies, spacing. Counted, never assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

if TYPE_CHECKING:
    from partwise.tasks._long_range_writing import Written
    from partwise.tasks.long_range_rules import Options


def count(options: Options, conduits: Int[np.ndarray, "conduit word"], written: Written) -> dict[str, int | float]:
    """- rules: an open symbol with a close symbol at the right distance and one of the conduits in between
    - copies: places outside these rules where one of the conduits stands; per conduit: the mean, the least, the most
    - chance: those of the copies that nobody put there
    - repeated: the share of conduits that stand anywhere outside a rule
    - spacing: words from one open symbol to the next (mean, least)
    - filler: the share of words that belong to no rule and no copy"""
    tokens = written.tokens
    standing = _places(tokens, conduits)
    starts = np.flatnonzero(tokens == options.open_id)
    starts = starts[starts + options.rule <= len(tokens)]
    closed = starts[tokens[starts + options.rule - 1] == options.close_id]
    rules = closed[standing[closed + 1] >= 0]
    outside = standing >= 0
    outside[rules + 1] = False
    each = np.bincount(standing[outside], minlength=len(conduits))[: len(conduits)]
    asked = 0 if options.setting == "reported-fault" else options.copies * len(conduits)
    gaps = np.diff(np.flatnonzero(tokens == options.open_id))
    return {
        "tokens": len(tokens),
        "open_symbols": int((tokens == options.open_id).sum()),
        "closed_at_distance": len(closed),
        "rules": len(rules),
        "copies": int(each.sum()),
        "copies_mean": float(each.mean()),
        "copies_least": int(each.min()),
        "copies_most": int(each.max()),
        "chance_copies": int(each.sum()) - asked if options.setting != "reported-fault" else float("nan"),
        "repeated_conduits": float((each > 0).mean()),
        "spacing_mean": float(gaps.mean()) if len(gaps) else float("nan"),
        "spacing_least": int(gaps.min()) if len(gaps) else float("nan"),
        "filler_share": 1 - (len(rules) * options.rule + int(each.sum()) * options.conduit) / len(tokens),
    }


def _places(tokens: Int[np.ndarray, " token"], conduits: Int[np.ndarray, "conduit word"]) -> Int[np.ndarray, " token"]:
    """At each position, the number of the conduit that begins there, else -1. Equal conduits count as the first of them."""
    width = conduits.shape[1]
    found = np.full(len(tokens), -1, np.int64)
    candidates = np.flatnonzero(np.isin(tokens, conduits[:, 0]))
    candidates = candidates[candidates + width <= len(tokens)]
    for place in range(1, width):
        candidates = candidates[np.isin(tokens[candidates + place], conduits[:, place])]
    numbers: dict[tuple[int, ...], int] = {}
    for number, conduit in enumerate(conduits.tolist()):
        numbers.setdefault(tuple(conduit), number)
    for position, words in zip(candidates, tokens[candidates[:, None] + np.arange(width)].tolist(), strict=True):
        found[position] = numbers.get(tuple(words), -1)
    return found
