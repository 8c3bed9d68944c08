"""Sets of paths, said as a pattern over the nodes they pass.

A pattern is node patterns between `>`, from `x` to `q`:

- `c1@2`, `c1@*`, `[ifo]0@*`, `?1@3`: one node, as shells match names; `c1@*|h1@*` is either.
- `*`: any nodes, or none. `*!f0@*`: any nodes but these, or none.
- a `+` behind a node pattern: one or more such nodes in a row.

`x>*>c1@*>h1@*>q` ends with a cell of the second layer and its hidden state; `x>*!f0@*>q` never passes a forget gate of the
first.

A pattern is a finite automaton. Each path is read by it once, so that no path counts twice, whatever the pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple

from partwise.errors import InputError
from partwise.methods.influence_paths.graph import QUANTITY, SOURCE

Places = frozenset[int]  # how far the pattern may have got
NOWHERE: Places = frozenset()
_NODE = re.compile(r"(?:[a-z?*]|\[[^]]+\])(?:[0-9?*]|\[[^]]+\])*@(?:[0-9?*]|\[[^]]+\])+")


class Element(NamedTuple):
    """One part of a pattern: `again` may match more nodes in a row, `maybe` none at all; `unless` turns the match round."""

    names: tuple[str, ...]
    again: bool = False
    maybe: bool = False
    unless: bool = False

    def fits(self, node: str) -> bool:
        return any(fnmatchcase(node, name) for name in self.names) != self.unless


@dataclass(frozen=True)
class Pattern:
    """The automaton: `start`, then `after` each node of a path; `accepts` where it ends."""

    text: str
    elements: tuple[Element, ...]

    @property
    def start(self) -> Places:
        return self._closed({0})

    def after(self, places: Places, node: str) -> Places:
        return _after(self, places, node)

    def accepts(self, places: Places) -> bool:
        return len(self.elements) in places

    def names(self) -> list[str]:
        """The node patterns in it."""
        return [name for element in self.elements for name in element.names if name not in ("*", SOURCE, QUANTITY)]

    def backwards(self) -> Pattern:
        """The pattern of the same paths, read from the quantity to the source."""
        return Pattern(f"{self.text} (backwards)", self.elements[::-1])

    def _closed(self, places: set[int]) -> Places:
        """With every place that can be reached by leaving out what may be left out."""
        closed = set(places)
        for place in range(min(places, default=0), len(self.elements)):
            if place in closed and self.elements[place].maybe:
                closed.add(place + 1)
        return frozenset(closed)


@cache
def _after(pattern: Pattern, places: Places, node: str) -> Places:
    reached = set()
    for place in places:
        if place < len(pattern.elements) and (element := pattern.elements[place]).fits(node):
            reached.add(place if element.maybe else place + 1)
            if element.again and not element.maybe:
                reached.add(place)
    return pattern._closed(reached) if reached else NOWHERE


def parse(text: str) -> Pattern:
    """The automaton of a pattern."""
    parts = text.split(">")
    if len(parts) < 3 or parts[0] != SOURCE or parts[-1] != QUANTITY:
        raise InputError(f"pattern {text!r} must go from {SOURCE} to {QUANTITY}, like x>*>c1@*>h1@*>q")
    return Pattern(text, (Element((SOURCE,)), *(_element(part, text) for part in parts[1:-1]), Element((QUANTITY,))))


def _element(part: str, text: str) -> Element:
    if part == "*":
        return Element(("*",), again=True, maybe=True)
    if part.startswith("*!"):
        return Element(_names(part.removeprefix("*!"), text), again=True, maybe=True, unless=True)
    return Element(_names(part.removesuffix("+"), text), again=part.endswith("+"))


def _names(part: str, text: str) -> tuple[str, ...]:
    names = tuple(part.split("|"))
    for name in names:
        if not _NODE.fullmatch(name):
            raise InputError(
                f"pattern {text!r}: {name!r} is no node pattern; give node, layer, @ and step, like c1@*, or * for any"
            )
    return names
