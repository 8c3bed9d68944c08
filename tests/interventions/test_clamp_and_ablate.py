"""Clamping and ablating, against loops written by hand over PyTorch's own equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import partwise as pw
from partwise.errors import InputError
from partwise.interventions.clamp import random_gates
from partwise.methods.influence_paths.graph import Graph
from tests.methods.test_influence_paths import HIDDEN, WORDS, model

IDS = torch.tensor([[3, 0, 6], [1, 5, 8], [2, 2, 7]])


def by_hand(
    wrapped: Any, ids: Tensor, hold: Any, recurrent: Any = lambda _, h: h, last: Any = lambda h: h
) -> tuple[Tensor, dict]:
    """(score of 2 less 5, every node's value); `hold(node, value)` may change a node, `recurrent` what a layer reads of
    itself."""
    module, values = wrapped.twins[0].module, {}
    x = list(wrapped.embedding(ids).transpose(0, 1))
    for layer in range(2):
        w, u, b, d = (getattr(module, f"{kind}_l{layer}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        h, c, outputs = torch.zeros(len(ids), HIDDEN).double(), torch.zeros(len(ids), HIDDEN).double(), []
        for step, word in enumerate(x):
            sums = (word @ w.T + b + recurrent(layer, h) @ u.T + d).split(HIDDEN, dim=1)
            gate = {}
            for name, value, squash in zip(
                "ifgo", sums, (torch.sigmoid, torch.sigmoid, torch.tanh, torch.sigmoid), strict=True
            ):
                gate[name] = values[f"{name}{layer}@{step}"] = hold(f"{name}{layer}@{step}", squash(value))
            c = values[f"c{layer}@{step}"] = hold(f"c{layer}@{step}", gate["f"] * c + gate["i"] * gate["g"])
            h = values[f"h{layer}@{step}"] = hold(f"h{layer}@{step}", gate["o"] * torch.tanh(c))
            outputs.append(h)
        x = outputs
    logits = wrapped.head(last(x[-1]))
    return (logits[:, 2] - logits[:, 5]).detach(), {node: value.detach() for node, value in values.items()}


def untouched(_: str, value: Tensor) -> Tensor:
    return value


@pytest.mark.parametrize("per_step", [True, False])
@pytest.mark.parametrize("pool", [None, ["a", "b", "a"]])
def test_compression_keeps_some_gates_and_holds_all_others_at_their_means(per_step: bool, pool: Any) -> None:
    wrapped = model("lstm")
    original, values = by_hand(wrapped, IDS, untouched)
    keep = {"g0@0", "g1@0"}
    groups = [0, 1, 0] if pool else [0, 0, 0]

    def mean(node: str) -> Tensor:
        same = [node] if per_step else [other for other in values if other.split("@")[0] == node.split("@")[0]]
        stacked = torch.stack([values[other] for other in same])
        rows = [[i for i in range(3) if groups[i] == groups[row]] for row in range(3)]
        return torch.stack([stacked[:, some].mean(dim=(0, 1)) for some in rows])

    expected, _ = by_hand(wrapped, IDS, lambda node, value: mean(node) if node[0] in "ifgo" and node not in keep else value)
    found = pw.clamp(wrapped, IDS, 0, (2, 5), keep=["g?@0"], pool=pool, per_step=per_step)
    assert found.original.values == pytest.approx(original.numpy(), abs=1e-12)
    assert found.clamped.values == pytest.approx(expected.numpy(), abs=1e-12)
    assert found.attrs["nodes"] == 2 * 3 * 4 - 2


def test_clamping_at_the_baseline_holds_nodes_where_the_baseline_puts_them() -> None:
    wrapped = model("lstm")
    moved = model("lstm")
    baseline = torch.randn(3, 3, dtype=torch.float64)
    vectors = wrapped.embedding(IDS).detach().clone()
    vectors[:, 0] = baseline
    moved.embedding = None
    _, values = _with_vectors(wrapped, vectors)
    expected, _ = by_hand(wrapped, IDS, lambda node, value: values[node] if node in ("c1@1", "c0@0") else value)
    found = pw.clamp(wrapped, IDS, 0, (2, 5), nodes=["c1@1", "c0@0"], to="baseline", baseline=baseline)
    assert found.clamped.values == pytest.approx(expected.numpy(), abs=1e-12)


def _with_vectors(wrapped: Any, vectors: Tensor) -> tuple[Tensor, dict]:
    class Fixed:
        embedding = staticmethod(lambda _: vectors)
        twins, head = wrapped.twins, wrapped.head

    return by_hand(Fixed, torch.zeros(len(vectors), 1), untouched)


@pytest.mark.parametrize("to", ["zero", "mean"])
def test_units_held_everywhere_and_only_where_their_own_layer_reads_them(to: str) -> None:
    wrapped = model("lstm")
    original, values = by_hand(wrapped, IDS, untouched)
    units = [(0, 2), (1, 3)]
    everywhere, recurrent = (pw.ablate(wrapped, IDS, (2, 5), units, to=to, how=how) for how in ("everywhere", "recurrent"))
    for number, (layer, unit) in enumerate(units):
        steps = torch.stack([values[f"h{layer}@{step}"][:, unit] for step in range(3)])
        value = 0.0 if to == "zero" else float(steps.mean())

        def without(h: Tensor, unit: int = unit, value: float = value) -> Tensor:
            return torch.cat((h[:, :unit], torch.full_like(h[:, :1], value), h[:, unit + 1 :]), dim=1)

        def hold(node: str, h: Tensor, layer: int = layer, without: Any = without) -> Tensor:
            return without(h) if node.startswith(f"h{layer}@") else h

        def read(at: int, h: Tensor, layer: int = layer, without: Any = without) -> Tensor:
            return without(h) if at == layer else h

        expected, _ = by_hand(wrapped, IDS, hold, read)
        assert everywhere.ablated.values[number] == pytest.approx(expected.numpy(), abs=1e-12)
        theirs, _ = by_hand(wrapped, IDS, untouched, read, without if layer == 1 else lambda h: h)
        assert recurrent.ablated.values[number] == pytest.approx(theirs.numpy(), abs=1e-12)
    assert everywhere.original.values == pytest.approx(original.numpy(), abs=1e-12)
    assert not np.allclose(everywhere.ablated[0], recurrent.ablated[0])  # a unit of the first layer still feeds the second


def test_many_units_in_chunks() -> None:
    wrapped = model("gru")
    units = [(layer, unit) for layer in range(2) for unit in range(HIDDEN)]
    whole, some = (pw.ablate(wrapped, IDS, (2, 5), units, budget=budget) for budget in ("1GB", 3000))
    assert some.ablated.values == pytest.approx(whole.ablated.values, abs=1e-14)
    assert whole.unit.values[5] == "layer1.hidden[1]"


def test_random_gates_are_the_control() -> None:
    graph = Graph("lstm", 2, 3)
    assert len(graph.gates()) == 24
    assert len(graph.nodes()) == 36
    one, same, other = (random_gates(graph, 5, seed) for seed in (0, 0, 1))
    assert one == same != other
    assert set(one) < set(map(str, graph.gates()))
    assert len(set(one)) == 5


def test_wrong_input_is_named() -> None:
    wrapped = model("lstm")
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "give either nodes= .* or keep="),
        ({"nodes": ["c1@0"], "keep": []}, "give either nodes= .* or keep="),
        ({"nodes": ["c2@0"]}, "unknown node 'c2@0'"),
        ({"keep": ["c1@0"]}, "unknown gate 'c1@0'"),
        ({"keep": [], "to": "median"}, "unknown value of to 'median'"),
        ({"keep": [], "pool": [0, 1]}, r"pool has shape \(2,\); give one number or name for each of the 3 sentences"),
    ]
    for given, message in cases:
        with pytest.raises(InputError, match=message):
            pw.clamp(wrapped, IDS, 0, (2, 5), **given)
    with pytest.raises(InputError, match=r"units holds \(2, 0\); layers are 0 to 1, units 0 to 3"):
        pw.ablate(wrapped, IDS, (2, 5), [(2, 0)])
    with pytest.raises(InputError, match="units is empty"):
        pw.ablate(wrapped, IDS, (2, 5), [])
    with pytest.raises(InputError, match="unknown how 'all'"):
        pw.ablate(wrapped, IDS, (2, 5), [(0, 0)], how="all")
    with pytest.raises(InputError, match="count is 99; there are 24 gates"):
        random_gates(Graph("lstm", 2, 3), 99, 0)
    assert WORDS == 9
