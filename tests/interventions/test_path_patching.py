"""Path patching against the unfolded tree itself, every path with a source of its own; and against clamping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import partwise as pw
from partwise.errors import InputError
from partwise.interventions.path_patching import parents
from partwise.methods.influence_paths.graph import Graph
from tests.methods.paths_by_hand import Sentence
from tests.methods.test_influence_paths import WORDS, model, zero_state
from tests.methods.test_path_sum import PATTERNS

pytestmark = pytest.mark.filterwarnings("ignore:completeness")


def unfolded(
    sentence: Sentence, fits: Any, word: Tensor, baseline: Tensor, node: str = "q", after: tuple[str, ...] = ()
) -> Tensor:
    """A node's value for one way on to the quantity: its parents are computed anew for it, down to the source."""
    way = (node, *after)
    if node == "x":
        return word if fits(">".join(way)) else baseline
    if not sentence.parents[node]:
        return sentence.value[node]
    return sentence.function[node](
        *(unfolded(sentence, fits, word, baseline, parent, way) for parent in sentence.parents[node])
    )


@pytest.mark.parametrize(
    ("cell", "pattern"),
    [
        *((cell, pattern) for cell in ("lstm", "gru") for pattern in ("x>*>q", "x>*>h0@1>*>q", "x>*![cz]0@*>q")),
        ("lstm", "x>*>h0@*>g0@*|f0@*>*>q"),
        ("lstm", "x>*>i0@2>*>q"),
        ("gru", "x>*>h0@*>h0@*|z0@*>*>q"),
        ("gru", "x>*>n0@2>*>q"),
    ],
)
def test_it_is_the_tree_itself(cell: str, pattern: str) -> None:
    wrapped, ids = model(cell, layers=1), torch.tensor([[3, 0, 6]])
    baseline = torch.randn(1, 3, dtype=torch.float64)
    found = pw.patch_paths(wrapped, ids, 0, (2, 5), baseline, pattern=pattern)
    weight, words = wrapped.head.weight.detach(), wrapped.embedding.weight[ids[0]].detach()
    graph = Sentence(cell, wrapped.twins[0].module, words, zero_state(wrapped), lambda h: (weight[2] - weight[5]) @ h)
    fits = _matcher(pattern)

    def quantity(fitting: Tensor, others: Tensor) -> float:
        return unfolded(graph, fits, fitting, others).item()

    word = words[0]
    assert found.removed.item() == pytest.approx(quantity(word, word) - quantity(baseline[0], word), abs=1e-12)
    assert found.alone.item() == pytest.approx(quantity(word, baseline[0]) - quantity(baseline[0], baseline[0]), abs=1e-12)


def _matcher(pattern: str) -> Any:
    """By the automaton, which has tests of its own against regular expressions."""
    from partwise.methods.influence_paths.pattern import parse

    automaton = parse(pattern)

    def fits(label: str) -> bool:
        places = automaton.start
        for node in label.split(">"):
            places = automaton.after(places, node)
        return automaton.accepts(places)

    return fits


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_all_paths_make_the_whole_change_and_attribution_is_exact_for_it(cell: str) -> None:
    wrapped, ids = model(cell), torch.tensor([[3, 0, 6, 2], [1, 5, 8, 4]])
    baseline = wrapped.embedding.weight[[4, 7]].detach()
    found = pw.patch_paths(wrapped, ids, 0, (2, 5), baseline, 100, pattern="x>*>q")
    moved = wrapped.embedding(ids).detach()
    moved[:, 0] = baseline
    logits = [wrapped(x)[:, -1].detach() for x in (ids, moved)]
    change = (logits[0][:, 2] - logits[0][:, 5]) - (logits[1][:, 2] - logits[1][:, 5])
    for name in ("removed", "alone", "attributed"):
        assert found[name].values == pytest.approx(change.numpy(), abs=1e-6), name


@pytest.mark.parametrize(
    ("cell", "node"), [("lstm", "c1@1"), ("lstm", "g0@0"), ("lstm", "h1@3"), ("gru", "h0@1"), ("gru", "z1@2")]
)
def test_all_paths_through_a_node_are_what_clamping_it_shows(cell: str, node: str) -> None:
    wrapped, ids = model(cell), torch.tensor([[3, 0, 6, 2], [1, 5, 8, 4]])
    baseline = wrapped.embedding.weight[[4, 7]].detach()
    patched = pw.patch_paths(wrapped, ids, 0, (2, 5), baseline, pattern=f"x>*>{node}>*>q")
    clamped = pw.clamp(wrapped, ids, 0, (2, 5), nodes=[node], to="baseline", baseline=baseline)
    assert patched.removed.values == pytest.approx(clamped.change.values, abs=1e-12)
    assert np.abs(clamped.change.values).max() > 1e-6


def test_where_the_word_is_close_to_the_baseline_what_is_attributed_is_what_happens() -> None:
    """To first order, every set of paths does what is attributed to it: exactly the chain rule."""
    wrapped, ids = model("lstm"), torch.tensor([[3, 0, 6, 2]])
    near = wrapped.embedding(ids)[:, 0].detach() + 1e-4 * torch.randn(1, 3, dtype=torch.float64)
    for pattern in PATTERNS:
        found = pw.patch_paths(wrapped, ids, 0, (2, 5), near, pattern=pattern)
        whole = pw.patch_paths(wrapped, ids, 0, (2, 5), near, pattern="x>*>q").removed.item()
        assert found.removed.item() == pytest.approx(found.attributed.item(), abs=2e-3 * abs(whole)), pattern
        assert found.alone.item() == pytest.approx(found.attributed.item(), abs=2e-3 * abs(whole)), pattern


def test_a_source_later_on_and_an_initial_state() -> None:
    wrapped, ids = model("gru"), torch.tensor([[3, 0, 6, 2, 1]])
    later = pw.patch_paths(wrapped, ids, 2, (2, 5), pattern="x>*>h1@1>*>q")
    begun = pw.patch_paths(wrapped, ids[:, 2:], 0, (2, 5), pattern="x>*>h1@1>*>q", init=ids[:, :2])
    for name in ("removed", "alone", "attributed"):
        assert later[name].values == pytest.approx(begun[name].values, abs=1e-13)
    assert later.attrs["copies"] == begun.attrs["copies"] < 60


def test_parents_are_those_of_the_equations() -> None:
    graph = Graph("lstm", 2, 2)
    assert parents(graph, "c1@1") == ["f1@1", "c1@0", "i1@1", "g1@1"]
    assert parents(graph, "o0@0") == ["x"]
    assert parents(graph, "o0@1") == ["h0@0"]
    assert parents(Graph("gru", 2, 2), "n1@1") == ["h0@1", "r1@1", "h1@0"]


def test_sets_that_cannot_be_isolated_are_refused() -> None:
    wrapped, ids = model("lstm"), torch.zeros(1, 4, dtype=torch.int64)
    with pytest.raises(InputError, match=r"cannot be isolated within the budget: their automaton needs \d+ copies of nodes"):
        pw.patch_paths(wrapped, ids, 0, (2, 5), pattern="x>*>q", budget=1000)
    with pytest.raises(InputError, match="fits no node"):
        pw.patch_paths(wrapped, ids, 0, (2, 5), pattern="x>*>c5@*>*>q")
    assert WORDS == 9
