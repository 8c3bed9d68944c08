"""Clamp nodes: hold gates or states at values that say nothing of a sentence, and see what the quantity makes of it.

Nodes are named as in path labels (`g1@0`: the candidate of the second layer at the source's step; patterns as shells match
names). Compression (Lu et al. 2020, section 4.4) keeps some gates and clamps all others at their means; clamping single
nodes at the values they have when the source is at its baseline tries out what is attributed to all paths through them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from partwise.errors import InputError, unknown
from partwise.layers.precision import exact_products
from partwise.methods._sentences import read_through
from partwise.methods.influence_paths.case import Case, cases
from partwise.methods.influence_paths.graph import Graph, State
from partwise.randomness import generator

TO = ("mean", "baseline")
Values = Mapping[str, Float[Tensor, "sentence hidden"]]


def clamp(
    model: Any,
    ids: Any,
    source: int,
    contrast: Any,
    *,
    nodes: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    to: str = "mean",
    baseline: Any = None,
    pool: Any = None,
    per_step: bool = True,
    lengths: Any = None,
    init: Any = "zero",
    dtype: torch.dtype | None = None,
) -> xr.Dataset:
    """The quantity as it is (`original`) and with nodes clamped (`clamped`), dims (sentence).

    Either `nodes` says which to clamp, or `keep` which gates not to clamp (an empty list clamps every gate). `to` is the
    mean over sentences, or the value at the source's baseline. `pool` numbers the sentences that share a mean (default:
    all do); with `per_step=False` a mean runs over all steps, too. `source`, `contrast` and the rest as for `influence_paths`.
    """
    if to not in TO:
        raise unknown("value of to", to, TO)
    with exact_products(), torch.no_grad():
        asked, members = cases(
            model,
            "clamp",
            ids,
            source=source,
            contrast=contrast,
            baseline=baseline,
            points=1,
            lengths=lengths,
            init=init,
            dtype=dtype,
        )
        chosen = _chosen(asked[0].graph, nodes, keep)
        found = []
        for case in asked:
            start = case.inputs.baseline if to == "baseline" else None
            values = _recorded(case, start)
            if to == "mean":
                values = _means(values, _pool(pool, len(case.rows)), per_step)
            values = {node: value for node, value in values.items() if node in chosen}
            arrays = {"original": _quantity(case, {}), "clamped": _quantity(case, values)}
            found.append(xr.Dataset({name: ("sentence", value.cpu().numpy()) for name, value in arrays.items()}))
    result = found[0] if members is None else xr.concat(found, xr.Variable("member", list(members)))
    return result.assign(change=result.original - result.clamped).assign_attrs(nodes=len(chosen), to=to)


def random_gates(graph: Graph, count: int, seed: int) -> list[str]:
    """As many gates, drawn evenly: the control for a set that was chosen."""
    gates = [str(gate) for gate in graph.gates()]
    if not 0 <= count <= len(gates):
        raise InputError(f"count is {count}; there are {len(gates)} gates")
    return sorted(generator(seed, "gates").permutation(gates)[:count].tolist())


def _chosen(graph: Graph, nodes: Sequence[str] | None, keep: Sequence[str] | None) -> frozenset[str]:
    if (nodes is None) == (keep is None):
        raise InputError("give either nodes= (what to clamp) or keep= (which gates not to clamp)")
    every = [str(node) for node in (graph.nodes() if keep is None else graph.gates())]
    named: set[str] = set()
    for pattern in nodes if keep is None else keep or ():  # type: ignore[union-attr]
        fitting = {node for node in every if fnmatchcase(node, pattern)}
        if not fitting:
            raise unknown("gate" if nodes is None else "node", pattern, every)
        named |= fitting
    return frozenset(named if keep is None else set(every) - named)


def _recorded(case: Case, source: Float[Tensor, "sentence width"] | None) -> dict[str, Float[Tensor, "sentence hidden"]]:
    """The values of all nodes from the source's step on, with another vector in the source's place if one is given."""
    found: dict[str, Tensor] = {}

    def record(site: str, time: int, value: Tensor) -> Tensor:
        if time >= case.source:
            found[node_of(case, site, time)] = value
        return value

    vectors = case.read.vectors
    if source is not None:
        vectors = torch.cat((vectors[:, : case.source], source.unsqueeze(1), vectors[:, case.source + 1 :]), dim=1)
    read_through(case.model, vectors, case.read.start, tap=record)
    return found


def _means(values: Values, pool: Int[np.ndarray, " sentence"], per_step: bool) -> dict[str, Tensor]:
    found = {}
    for node, value in values.items():
        same = [node] if per_step else [other for other in values if other.split("@")[0] == node.split("@")[0]]
        mean = torch.empty_like(value)
        for number in np.unique(pool):
            rows = torch.from_numpy(np.flatnonzero(pool == number)).to(value.device)
            mean[rows] = torch.stack([values[other][rows] for other in same]).mean(dim=(0, 1))
        found[node] = mean
    return found


def _quantity(case: Case, values: Values) -> Float[Tensor, " sentence"]:
    """With some nodes held at values."""

    def hold(site: str, time: int, value: Tensor) -> Tensor:
        return values.get(node_of(case, site, time), value)

    hidden, _ = read_through(case.model, case.read.vectors, case.read.start, tap=hold)
    return case.quantity.value(hidden[:, -1:], case.rows)[:, 0]


def node_of(case: Case, site: str, time: int) -> str:
    """The name of a site at a step of the sentence: `layer0.forget_gate` at the source's own step is `f0@0`."""
    layer, _, name = site.partition(".")
    return str(State(case.graph.kind.sites[name], int(layer.removeprefix("layer")), time - case.source))


def _pool(pool: Any, sentences: int) -> Int[np.ndarray, " sentence"]:
    if pool is None:
        return np.zeros(sentences, np.int64)
    given = np.asarray(pool)
    if given.shape != (sentences,):
        raise InputError(f"pool has shape {given.shape}; give one number or name for each of the {sentences} sentences")
    return np.unique(given, return_inverse=True)[1]
