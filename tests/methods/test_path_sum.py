"""Sums over patterns against sums over names; and patterns against regular expressions."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
import torch

import partwise as pw
from partwise.errors import InputError
from partwise.methods.influence_paths.graph import Graph
from partwise.methods.influence_paths.halves import best_cut
from partwise.methods.influence_paths.labels import labels
from partwise.methods.influence_paths.pattern import parse
from partwise.models.language_model import LanguageModel
from partwise.population import Member, Population
from tests.methods.test_influence_paths import WORDS, model

pytestmark = pytest.mark.filterwarnings("ignore:completeness")
NODE = r"[a-z]\d@\d+"
ANY = rf"(?:{NODE}>)*"
PATTERNS = {  # and the same as a regular expression over labels
    "x>*>q": rf"x>{ANY}q",
    "x>*>c1@*>h1@*>q": rf"x>{ANY}c1@\d+>h1@\d+>q",
    "x>*>c1@0>c1@1>c1@2>c1@3>h1@3>q": rf"x>{ANY}c1@0>c1@1>c1@2>c1@3>h1@3>q",
    "x>g0@0>c0@0>h0@0>g1@0>c1@*+>h1@*>q": r"x>g0@0>c0@0>h0@0>g1@0>(?:c1@\d+>)+h1@\d+>q",
    "x>*!f0@*>q": rf"x>(?:(?!f0){NODE}>)*q",
    "x>*!f?@*|i?@*>q": rf"x>(?:(?![fi]){NODE}>)*q",
    "x>*>[ifo]1@2>*>q": rf"x>{ANY}[ifo]1@2>{ANY}q",
    "x>*>c0@1|c0@2>*>q": rf"x>{ANY}c0@[12]>{ANY}q",
    "x>*>c?@*>*>c?@*>*>q": rf"x>{ANY}c\d@\d+>{ANY}c\d@\d+>{ANY}q",
    "x>*>h0@1>*>h0@2>*>q": rf"x>{ANY}h0@1>{ANY}h0@2>{ANY}q",
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_sum_over_a_pattern_is_the_sum_over_its_paths(pattern: str) -> None:
    wrapped, ids = model("lstm"), torch.tensor([[3, 0, 6, 2], [1, 5, 8, 4]])
    every = pw.influence_paths(wrapped, ids, 0, (2, 5), points=3, rule="gauss-legendre")
    fits = np.array([bool(re.fullmatch(PATTERNS[pattern], label)) for label in every.labels])
    found = pw.path_sum(wrapped, ids, 0, (2, 5), points=3, pattern=pattern)
    assert found.attrs["paths"] == fits.sum() > 0
    scale = float(np.abs(every.influence).sum(axis=1).max())
    assert found.influence.values == pytest.approx(every.influence[:, fits].sum(axis=1), abs=1e-13 * scale)
    assert found.rest.values == pytest.approx(every.influence[:, ~fits].sum(axis=1), abs=1e-13 * scale)
    assert found.attrs["conservation"] < 1e-12


def test_gru_and_members() -> None:
    models = Population.initial(
        LanguageModel(words=WORDS, embedding=5, hidden=6, layers=2, cell="gru"),
        [Member("a", 0), Member("b", 1)],
        ["pytorch"] * 2,
    ).to(dtype=torch.float64)
    ids = torch.randint(WORDS, (2, 4))
    every = pw.influence_paths(models, ids, 0, (2, 5), points=10, rule="gauss-legendre")
    fits = np.array(["r" not in label for label in every.labels])
    found = pw.path_sum(models, ids, 0, (2, 5), points=10, pattern="x>*!r?@*>q")
    assert found.influence.dims == ("member", "sentence")
    assert found.influence.values == pytest.approx(every.influence[..., fits].sum(-1), abs=1e-13)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_read_backwards_accepts_the_same_paths(pattern: str) -> None:
    graph = Graph("lstm", 2, 4)
    forwards, backwards = parse(pattern), parse(pattern).backwards()
    for label in list(labels(graph, best_cut(graph)))[::7]:
        nodes = label.split(">")
        accepted = []
        for automaton, path in ((forwards, nodes), (backwards, nodes[::-1])):
            places = automaton.start
            for node in path:
                places = automaton.after(places, node)
            accepted.append(automaton.accepts(places))
        assert accepted == [bool(re.fullmatch(PATTERNS[pattern], label))] * 2


def test_fifty_steps_take_no_time_to_name() -> None:
    wrapped, ids = model("lstm"), torch.randint(WORDS, (1, 50))
    start = time.perf_counter()
    found = pw.path_sum(wrapped, ids, 0, (2, 5), points=5, pattern="x>*>c1@*+>h1@*>q")
    assert time.perf_counter() - start < 10  # shapes are checked here, which is slow
    assert found.attrs["paths"] < pw.count_paths(steps=50, layers=2)


def test_chunks_change_nothing() -> None:
    wrapped, ids = model("lstm"), torch.randint(WORDS, (5, 4))
    whole, some = (
        pw.path_sum(wrapped, ids, 0, (2, 5), points=6, pattern="x>*>c1@*>h1@*>q", budget=budget) for budget in ("1GB", "30KB")
    )
    assert some.influence.values == pytest.approx(whole.influence.values, abs=1e-13)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("c1@0>q", "must go from x to q, like"),
        ("x>q", "must go from x to q, like"),
        ("x>*>c1>q", "'c1' is no node pattern; give node, layer, @ and step, like c1@*"),
        ("x>c1@0>q", r"pattern 'x>c1@0>q' fits no path of 4 steps through 2 layers \(lstm\)"),
        ("x>*>c7@*>*>q", r"'c7@\*' fits no node of 4 steps through 2 layers"),
        ("x>*!c7@*>q", r"'c7@\*' fits no node"),
        ("x>*!f0>q", "'f0' is no node pattern"),
        ("x>*!>q", "'' is no node pattern"),
        ("x>*!f0@*+>q", "is no node pattern"),
        ("x>*!!f0@*>q", "is no node pattern"),
        ("x>*>f1@3>i1@3>*>q", "fits no path"),
    ],
)
def test_patterns_that_cannot_be_read_or_fit_nothing(pattern: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        pw.path_sum(model("lstm"), torch.zeros(1, 4, dtype=torch.int64), 0, (2, 5), pattern=pattern)
