"""The influence of a whole set of paths, said as a pattern: exact, for any length of context, without naming a single path.

Along the graph one tangent is carried for each state and for each place that the pattern's automaton may have reached: the
sum over all paths that have come so far and read so. Where the automaton accepts at the quantity, the sums make the
influence of the set; all others make that of the rest, and the two together must be the influence of the source (the
certificate).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from partwise.errors import InputError
from partwise.layers.precision import exact_products
from partwise.methods._sentences import bytes_of
from partwise.methods.influence_paths.case import Case, cases
from partwise.methods.influence_paths.certificate import (
    Certificate,
    complete_certificate,
    conservation_error,
    total_influence,
    worst,
)
from partwise.methods.influence_paths.graph import QUANTITY, SOURCE, Graph, Hop, State
from partwise.methods.influence_paths.halves import Tangents
from partwise.methods.influence_paths.pattern import Pattern, Places, parse
from partwise.methods.influence_paths.trace import Trace
from partwise.methods.influence_paths.walk import forwards

Sums = dict[Places, Tensor]


def path_sum(
    model: Any,
    ids: Any,
    source: int,
    contrast: Any,
    baseline: Any = None,
    points: int = 10,
    *,
    pattern: str,
    rule: str = "gauss-legendre",
    inputs: Any = None,
    lengths: Any = None,
    init: Any = "zero",
    dtype: torch.dtype | None = None,
    budget: str | int = "1GB",
) -> xr.Dataset:
    """`influence` of the paths that fit `pattern` (see `influence_paths/pattern`), and of the `rest`, dims (sentence); `paths`
    says how many they are. Other arguments as for `influence_paths`."""
    read = parse(pattern)
    with exact_products():
        asked, members = cases(
            model, "path_sum", ids, source=source, contrast=contrast, baseline=baseline, points=points, rule=rule,
            inputs=inputs, lengths=lengths, init=init, dtype=dtype,
        )  # fmt: skip
        fitting, _ = count_fitting(asked[0].graph, read)
        made = [_of_case(case, read, bytes_of(budget)) for case in asked]
    found, certificate = [dataset for dataset, _ in made], worst([certificate for _, certificate in made])
    certificate.warn(asked[0].model.dtype)
    result = found[0] if members is None else xr.concat(found, xr.Variable("member", list(members)))
    completeness = np.nan if certificate.completeness is None else certificate.completeness
    return result.assign_attrs(pattern=pattern, paths=fitting, conservation=certificate.conservation, completeness=completeness)


def count_fitting(graph: Graph, pattern: Pattern) -> tuple[int, int]:
    """How many paths fit a pattern (at least one, or it is refused), and how many sums a step needs at most."""
    nodes = [str(node) for node in graph.nodes()]
    for name in pattern.names():
        if not any(fnmatchcase(node, name) for node in nodes):
            raise InputError(f"pattern {pattern.text!r}: {name!r} fits no node of {_what(graph)}")
    last: dict[State, dict[Places, int]] = {}
    most = 0
    for states in forwards(graph, {pattern.after(pattern.start, SOURCE): 1}, _Counts(graph, pattern)):
        last, most = states, max(most, sum(len(sums) for sums in states.values()))
    ends = last[graph.last].items()
    fitting = sum(count for places, count in ends if pattern.accepts(pattern.after(places, QUANTITY)))
    if not fitting:
        raise InputError(f"pattern {pattern.text!r} fits no path of {_what(graph)}")
    return fitting, most


def _what(graph: Graph) -> str:
    return f"{graph.steps} steps through {graph.layers} layers ({graph.cell})"


class _Read:
    """Follows the automaton along hops; what else is carried is up to those who inherit."""

    def __init__(self, graph: Graph, pattern: Pattern) -> None:
        self.graph, self.pattern = graph, pattern

    def over(self, places: Places, nodes: Sequence[str]) -> Places:
        for node in nodes:
            places = self.pattern.after(places, node)
        return places

    def hop_nodes(self, hop: Hop, layer: int, step: int) -> list[str]:
        return hop.label(layer, step)[1:].split(">")

    def inner_node(self, layer: int, step: int) -> list[str]:
        return [str(State(self.graph.kind.inner[0][1], layer, step))]

    def carried_node(self, layer: int, step: int) -> list[str]:
        return [str(State(self.graph.kind.carried, layer, step))]


class _Counts(_Read):
    def dense(
        self, carried: dict[Places, int], hops: Sequence[Hop], layer: int, step: int, side: str
    ) -> list[dict[Places, int]]:
        return [self._on(carried, self.hop_nodes(hop, layer, step)) for hop in hops]

    def inner(self, carried: dict[Places, int], layer: int, step: int) -> dict[Places, int]:
        return self._on(carried, self.inner_node(layer, step))

    def carry(self, carried: dict[Places, int], layer: int, step: int) -> dict[Places, int]:
        return self._on(carried, self.carried_node(layer, step))

    def join(self, parts: Sequence[dict[Places, int]]) -> dict[Places, int]:
        total: dict[Places, int] = {}
        for part in parts:
            for places, count in part.items():
                total[places] = total.get(places, 0) + count
        return total

    def _on(self, carried: dict[Places, int], nodes: Sequence[str]) -> dict[Places, int]:
        return self.join([{self.over(places, nodes): count} for places, count in carried.items()])


class _Tangents(_Read):
    """Carries sums of tangents, one for each place of the automaton."""

    def __init__(self, trace: Trace, pattern: Pattern) -> None:
        super().__init__(trace.graph, pattern)
        self.one = Tangents(trace)

    def dense(self, carried: Sums, hops: Sequence[Hop], layer: int, step: int, side: str) -> list[Sums]:
        every = self.one.dense(torch.stack(list(carried.values())), hops, layer, step, side)
        return [self._arrived(carried, sums, self.hop_nodes(hop, layer, step)) for hop, sums in zip(hops, every, strict=True)]

    def inner(self, carried: Sums, layer: int, step: int) -> Sums:
        return self._each(carried, lambda sums: self.one.inner(sums, layer, step), self.inner_node(layer, step))

    def carry(self, carried: Sums, layer: int, step: int) -> Sums:
        return self._each(carried, lambda sums: self.one.carry(sums, layer, step), self.carried_node(layer, step))

    def join(self, parts: Sequence[Sums]) -> Sums:
        total: Sums = {}
        for part in parts:
            for places, tangents in part.items():
                total[places] = total[places] + tangents if places in total else tangents
        return total

    def _each(self, carried: Sums, change: Callable[[Tensor], Tensor], nodes: Sequence[str]) -> Sums:
        return self._arrived(carried, change(torch.stack(list(carried.values()))), nodes)

    def _arrived(self, carried: Sums, changed: Float[Tensor, "place row _"], nodes: Sequence[str]) -> Sums:
        return self.join([{self.over(places, nodes): sums} for places, sums in zip(carried, changed, strict=True)])


@torch.no_grad()
def sum_of_case(case: Case, pattern: Pattern, memory: int) -> Float[Tensor, "2 sentence"]:
    """The influence of the paths that fit, and of all others."""
    found = torch.zeros(2, len(case.rows), dtype=case.model.dtype, device=case.rows.device)
    _, sums = count_fitting(case.graph, pattern)
    for part in case.chunks(2 * sums * (1 + len(case.graph.kind.dense)), memory):
        traced = part.trace()
        gradient = part.gradient(traced) * part.inputs.weights.view(1, -1, 1)
        start = pattern.after(pattern.start, SOURCE)
        for states in forwards(case.graph, {start: traced.tangent}, _Tangents(traced, pattern)):
            last = states
        for reached, tangents in last[case.graph.last].items():
            influence = (tangents.view_as(gradient) * gradient).sum(dim=(1, 2))
            found[0 if pattern.accepts(pattern.after(reached, QUANTITY)) else 1, part.rows] += influence
    return found


def _of_case(case: Case, pattern: Pattern, memory: int) -> tuple[xr.Dataset, Certificate]:
    found = sum_of_case(case, pattern, memory)
    total, scale = total_influence(case, memory)
    scale = torch.maximum(found.abs().sum(dim=0), scale)
    certificate = complete_certificate(case, total, conservation_error(found.sum(dim=0), scale, total))
    arrays = {"influence": found[0], "rest": found[1], "total": total}
    return xr.Dataset({name: ("sentence", values.cpu().numpy()) for name, values in arrays.items()}), certificate
