"""Path patching: let some paths, and no others, see another word at the source. What is attributed to paths, tried out.

Every path has a source of its own, as if the model were unfolded into a tree (Goldowsky-Dill et al. 2023). Which paths a
node's value serves only matters through what the pattern's automaton, read from the quantity backwards, has come to; so
each node is computed once for every state of the automaton, not once for every path.

1. Backwards from the quantity: which nodes are needed, in which states of the automaton.
2. Forwards: each of them from its parents in the states that they are in; the source is the word or the baseline, as the
   automaton accepts or not.
3. `removed`: the quantity less what it becomes when the paths of the pattern see the baseline. `alone`: what it becomes
   when only they see the word, less its value at the baseline. `attributed`: the paths' influence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from partwise.errors import InputError
from partwise.layers.precision import exact_products
from partwise.methods._sentences import bytes_of, read_through
from partwise.methods.influence_paths.case import Case, cases
from partwise.methods.influence_paths.graph import QUANTITY, SOURCE, Graph, State
from partwise.methods.influence_paths.pattern import Pattern, Places, parse
from partwise.methods.path_sum import count_fitting, sum_of_case

Copy = tuple[str, Places]  # a node, and what the automaton has come to from the quantity back to it
Values = dict[Copy, Float[Tensor, "sentence hidden"]]
_KEPT = 8  # values of a copy at work at once


def patch_paths(
    model: Any,
    ids: Any,
    source: int,
    contrast: Any,
    baseline: Any = None,
    points: int = 10,
    *,
    pattern: str,
    rule: str = "gauss-legendre",
    lengths: Any = None,
    init: Any = "zero",
    dtype: torch.dtype | None = None,
    budget: str | int = "1GB",
) -> xr.Dataset:
    """`removed`, `alone` and `attributed` of the paths that fit `pattern`, dims (sentence); arguments as for `path_sum`."""
    read = parse(pattern)
    with exact_products(), torch.no_grad():
        asked, members = cases(
            model, "patch_paths", ids, source=source, contrast=contrast, baseline=baseline, points=points, rule=rule,
            lengths=lengths, init=init, dtype=dtype,
        )  # fmt: skip
        graph = asked[0].graph
        fitting, _ = count_fitting(graph, read)
        backwards, needed = read.backwards(), _needed(graph, read.backwards())
        _check_budget(asked[0], len(needed), bytes_of(budget))
        found = [_of_case(case, read, backwards, needed, bytes_of(budget)) for case in asked]
    result = found[0] if members is None else xr.concat(found, xr.Variable("member", list(members)))
    return result.assign_attrs(pattern=pattern, paths=fitting, copies=len(needed))


def parents(graph: Graph, node: str) -> list[str]:
    """What a node is computed from, constants left out; in the order in which `_value` takes them."""
    letter, layer, step = State.parse(node)
    below = [f"h{layer - 1}@{step}"] if layer else [SOURCE] if step == 0 else []
    before = [f"h{layer}@{step - 1}"] if step else []
    at = f"{layer}@{step}"
    if graph.cell == "lstm":
        if letter == "c":
            return [f"f{at}", *([f"c{layer}@{step - 1}"] if step else []), f"i{at}", f"g{at}"]
        return [f"o{at}", f"c{at}"] if letter == "h" else below + before
    if letter == "h":
        return [f"z{at}", f"n{at}", *before]
    return [*below, f"r{at}", *before] if letter == "n" else below + before


def _needed(graph: Graph, backwards: Pattern) -> list[Copy]:
    """Every copy that is needed, parents before children."""
    start = backwards.after(backwards.after(backwards.start, QUANTITY), str(graph.last))
    known: dict[Copy, None] = {}
    waiting = [(str(graph.last), start)]
    while waiting:
        copy = waiting.pop()
        if copy in known:
            continue
        known[copy] = None
        if copy[0] != SOURCE:
            waiting += [(parent, backwards.after(copy[1], parent)) for parent in parents(graph, copy[0])]
    place = {SOURCE: -1} | {str(node): number for number, node in enumerate(graph.nodes())}
    return sorted(known, key=lambda copy: place[copy[0]])


def _check_budget(case: Case, copies: int, memory: int) -> None:
    needed = copies * _KEPT * len(case.rows) * case.model.hidden * case.model.dtype.itemsize
    if needed > memory:
        raise InputError(
            f"these paths cannot be isolated within the budget: their automaton needs {copies:,} copies of nodes, "
            f"{needed:,} bytes for {len(case.rows)} sentences; the budget is {memory:,}. Give fewer sentences, a simpler "
            "pattern, or raise budget="
        )


def _of_case(case: Case, pattern: Pattern, backwards: Pattern, needed: list[Copy], memory: int) -> xr.Dataset:
    assert case.inputs.baseline is not None
    word, baseline = case.read.vectors[:, case.source], case.inputs.baseline
    ends = {}
    for name, (fitting, others) in {
        "word": (word, word), "removed": (baseline, word), "alone": (word, baseline), "baseline": (baseline, baseline),
    }.items():  # fmt: skip
        ends[name] = _Unfolded(case, backwards, fitting, others).quantity(needed)
    arrays = {
        "removed": ends["word"] - ends["removed"],
        "alone": ends["alone"] - ends["baseline"],
        "attributed": sum_of_case(case, pattern, memory)[0],
        "original": ends["word"],
    }
    return xr.Dataset({name: ("sentence", values.cpu().numpy()) for name, values in arrays.items()})


class _Unfolded:
    """The model from the source's step on, each node computed once for every state of the automaton."""

    def __init__(self, case: Case, backwards: Pattern, fitting: Tensor, others: Tensor) -> None:
        self.case, self.backwards = case, backwards
        self.fitting, self.others = fitting, others
        self.state = case.read.start
        if case.source:
            _, self.state = read_through(case.model, case.read.vectors[:, : case.source], self.state)
        self.values: Values = {}

    def quantity(self, needed: list[Copy]) -> Float[Tensor, " sentence"]:
        graph = self.case.graph
        for copy in needed:
            self.values[copy] = self._value(*copy)
        last = self.values[needed[-1]]
        assert needed[-1][0] == str(graph.last)
        return self.case.quantity.value(last.unsqueeze(1), self.case.rows)[:, 0]

    def _value(self, node: str, places: Places) -> Tensor:
        if node == SOURCE:
            return self.fitting if self.backwards.accepts(places) else self.others
        letter, layer, step = State.parse(node)
        if letter in self.case.graph.kind.gates:
            return self._gate(letter, layer, step, places)
        given = list(self._given(node, places))
        if self.case.graph.cell == "lstm":
            if letter == "h":
                return given[0] * torch.tanh(given[1])
            old = given.pop(1) if step else self._first(layer, 1)
            return given[0] * old + given[1] * given[2]
        old = given[2] if step else self._first(layer, 0)
        return (1 - given[0]) * given[1] + given[0] * old

    def _gate(self, letter: str, layer: int, step: int, places: Places) -> Tensor:
        """sigma or tanh of both maps' rows of this gate."""
        model, hidden = self.case.model, self.case.model.hidden
        given = list(self._given(f"{letter}{layer}@{step}", places))
        below = given.pop(0) if layer or step == 0 else self.case.read.vectors[:, self.case.source + step]
        reset = given.pop(0) if self.case.graph.cell == "gru" and letter == "n" else None
        old = given.pop(0) if step else self._first(layer, 0)
        place = self.case.graph.kind.gates.index(letter)
        rows = slice(place * hidden, (place + 1) * hidden)
        sums = []
        for side, value in (("input", below), ("recurrent", old)):
            weight, bias = model.parameters[f"layer{layer}.{side}.weight"], model.parameters.get(f"layer{layer}.{side}.bias")
            sums.append(torch.nn.functional.linear(value, weight[rows], None if bias is None else bias[rows]))
        from_old = sums[1] if reset is None else reset * sums[1]
        return torch.tanh(sums[0] + from_old) if letter in "gn" else torch.sigmoid(sums[0] + from_old)

    def _given(self, node: str, places: Places) -> Iterator[Tensor]:
        for parent in parents(self.case.graph, node):
            yield self.values[parent, self.backwards.after(places, parent)]

    def _first(self, layer: int, part: int) -> Tensor:
        """The state before the source's step: nothing that any path changes."""
        return self.state[layer][part].expand(len(self.case.rows), -1)
