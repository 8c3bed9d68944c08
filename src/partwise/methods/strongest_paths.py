"""The strongest paths of any context: found best first, and proved to be the strongest.

A context of 20 words has 2.7e15 paths through two layers; this names the k strongest of them without enumerating the rest.

1. For every state, the second moment of all paths from there to the quantity (`influence_paths/moments`): it bounds how
   much any path that has come so far can still become.
2. Always extend the beginnings with the highest bounds. A path that reaches the quantity has its exact influence.
3. Stop when no beginning is left whose bound exceeds the k-th strongest path found: then nothing stronger exists (`proven`), up
   to rounding, which the bound allows for. A search that the budget ends before says so, and how strong the rest can be at
   most.
4. Certificate: each path found, computed once more from the quantity backwards.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from partwise.errors import InputError
from partwise.layers.precision import exact_products
from partwise.methods._sentences import bytes_of
from partwise.methods.influence_paths import follow
from partwise.methods.influence_paths.case import Case, cases
from partwise.methods.influence_paths.certificate import CONSERVATION, total_and_certificate
from partwise.methods.influence_paths.graph import QUANTITY, SOURCE, State
from partwise.methods.influence_paths.halves import Tangents
from partwise.methods.influence_paths.moments import Rest, check_budget
from partwise.methods.influence_paths.trace import Trace
from partwise.progress import Progress

_AT_ONCE = 128  # beginnings extended together


class Found(NamedTuple):
    """A path that reached the quantity; compares by size."""

    size: float
    label: str
    influence: float


def strongest_paths(
    model: Any,
    ids: Any,
    source: int,
    contrast: Any,
    baseline: Any = None,
    points: int = 10,
    *,
    k: int = 20,
    rule: str = "gauss-legendre",
    inputs: Any = None,
    lengths: Any = None,
    init: Any = "zero",
    dtype: torch.dtype | None = None,
    budget: str | int = "2GB",
) -> xr.Dataset:
    """The `k` paths with the largest influence in size, of each sentence: `influence` and `label`, dims (sentence, rank).

    `bound`: no path left out has more. `proven`: that bound is at most the
    weakest path named. Other arguments as for
    `influence_paths`. `total` is the influence of the source; a warning says where there were too few points for it to be the
    change of the quantity.
    """
    if k < 1:
        raise InputError(f"k is {k}; it must be 1 or more")
    with exact_products(), torch.no_grad():
        asked, members = cases(
            model, "strongest_paths", ids, source=source, contrast=contrast, baseline=baseline, points=points, rule=rule,
            inputs=inputs, lengths=lengths, init=init, dtype=dtype,
        )  # fmt: skip
        memory, done = bytes_of(budget), [0]
        total = len(asked) * len(asked[0].rows)
        with Progress("strongest paths", float(total), lambda: float(done[0])):
            found = []
            for case in asked:
                of_sentences = []
                for row in case.rows:
                    of_sentences.append(_search(case.part(row.unsqueeze(0), 0, case.points), k, memory))
                    done[0] += 1
                whole, certificate = total_and_certificate(case, memory)
                found.append(xr.concat(of_sentences, "sentence").assign(total=("sentence", whole.cpu().numpy())))
                certificate.warn(case.model.dtype)
    return found[0] if members is None else xr.concat(found, xr.Variable("member", list(members)))


class _Beginnings:
    """Beginnings of paths that may still become strong ones, the most promising first."""

    def __init__(self, trace: Trace, rest: Rest, gradient: Tensor, k: int) -> None:
        self.trace, self.rest, self.k = trace, rest, k
        self.gradient = gradient * trace.inputs.weights.unsqueeze(1)
        self.heap: list[tuple[float, int]] = []
        self.kept: dict[int, tuple[State, Tensor, str]] = {}
        self.best: list[Found] = []
        self.born = 0

    @property
    def least(self) -> float:
        """What a path must exceed to be among the k strongest."""
        return self.best[0].size if len(self.best) == self.k else 0.0

    @property
    def highest(self) -> float:
        """No path that is not yet known has more influence than this."""
        return -self.heap[0][0] if self.heap else 0.0

    def add(self, state: State, tangents: Float[Tensor, "path point hidden"], labels: Sequence[str]) -> None:
        if state == self.trace.graph.last:
            for value, label in zip((tangents * self.gradient).sum(dim=(1, 2)).tolist(), labels, strict=True):
                heapq.heappush(self.best, Found(abs(value), f"{label}>{QUANTITY}", value))
                if len(self.best) > self.k:
                    heapq.heappop(self.best)
        if not follow.following(self.trace.graph, state):
            return
        least = self.least
        for number, bound in enumerate(self.rest.bound(state, tangents).tolist()):
            if bound > least:
                self.kept[self.born] = (state, tangents[number], labels[number])
                heapq.heappush(self.heap, (-bound, self.born))
                self.born += 1

    def pop(self) -> dict[State, list[tuple[Tensor, str]]]:
        """The most promising beginnings, by the state they have reached."""
        groups: dict[State, list[tuple[Tensor, str]]] = {}
        for _ in range(_AT_ONCE):
            if self.highest <= self.least:
                break
            _, number = heapq.heappop(self.heap)
            state, tangent, label = self.kept.pop(number)
            groups.setdefault(state, []).append((tangent, label))
        return groups


def _search(case: Case, k: int, memory: int) -> xr.Dataset:
    most = check_budget(case, memory, 2 * _AT_ONCE)
    traced = case.trace()
    gradient = case.gradient(traced)[0]
    beginnings = _Beginnings(traced, Rest(traced, gradient), gradient, k)
    carrier, extended = Tangents(traced), 0
    for move, arrived in zip(*follow.extend(carrier, None, traced.tangent.unsqueeze(0)), strict=True):
        beginnings.add(move.to, arrived, [SOURCE + move.label])
    while beginnings.highest > beginnings.least and len(beginnings.kept) <= most:
        for state, group in beginnings.pop().items():
            tangents = torch.stack([tangent for tangent, _ in group])
            labels = [label for _, label in group]
            for move, arrived in zip(*follow.extend(carrier, state, tangents), strict=True):
                beginnings.add(move.to, arrived, [label + move.label for label in labels])
            extended += len(group)
    return _result(case, traced, gradient, beginnings, extended)


def _result(case: Case, traced: Trace, gradient: Tensor, beginnings: _Beginnings, extended: int) -> xr.Dataset:
    best = sorted(beginnings.best, key=lambda path: (-path.size, path.label))
    named = [(path.label, path.influence) for path in best] + [("", float("nan"))] * (beginnings.k - len(best))
    strongest = best[0].size if best and best[0].size else 1.0
    error = max((_error(case, traced, gradient, path) for path in best), default=0.0) / strongest
    if not error <= CONSERVATION[case.model.dtype]:
        warnings.warn(
            f"a path's influence is not the same from both ends, by {error:.1e} of the strongest; try dtype=torch.float64",
            stacklevel=3,
        )
    return xr.Dataset(
        {
            "influence": ("rank", np.array([influence for _, influence in named])),
            "label": ("rank", np.array([label for label, _ in named], dtype=object)),
            "bound": max(beginnings.highest, beginnings.least),
            "proven": beginnings.highest <= beginnings.least,
            "extended": extended,
            "error": error,
        },
        {"rank": np.arange(beginnings.k)},
    )


def _error(case: Case, traced: Trace, gradient: Tensor, path: Found) -> float:
    """How far a path's influence is from the same, computed from the quantity backwards."""
    hops = follow.moves(case.graph, path.label)
    rest = follow.adjoints(traced, hops, gradient)[0]
    first = follow.tangents(traced, hops[:1])[0]
    again = float(torch.einsum("ph,ph,p->", first, rest, traced.inputs.weights))
    return abs(again - path.influence)
