"""Influence paths against brute force: every path enumerated, every edge an explicit Jacobian."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import partwise as pw
from partwise.errors import InputError
from partwise.methods.influence_paths import halves
from partwise.methods.influence_paths.graph import Graph
from partwise.methods.influence_paths.labels import labels
from partwise.models.language_model import LanguageModel
from partwise.population import Member, Population
from tests.methods import paths_by_hand as by_hand

WORDS, WIDTH, HIDDEN = 9, 3, 4


def model(cell: str, layers: int = 2, dtype: torch.dtype = torch.float64) -> Any:
    torch.manual_seed(4)
    kind = nn.LSTM if cell == "lstm" else nn.GRU
    parts = {
        "embedding": nn.Embedding(WORDS, WIDTH),
        "recurrent": kind(WIDTH, HIDDEN, layers),
        "head": nn.Linear(HIDDEN, WORDS),
    }
    for part in parts.values():
        for parameter in part.double().parameters():
            nn.init.normal_(parameter)
        part.to(dtype)
    return pw.wrap(**parts)


def zero_state(wrapped: Any) -> list[tuple[torch.Tensor, ...]]:
    zero = torch.zeros(HIDDEN, dtype=torch.float64)
    return [(zero, zero) if wrapped.cell == "lstm" else (zero,)] * wrapped.layers


@pytest.mark.filterwarnings("ignore:completeness")
@pytest.mark.parametrize(
    ("cell", "layers", "steps"), [("lstm", 2, 3), ("lstm", 1, 4), ("lstm", 2, 1), ("gru", 2, 3), ("gru", 3, 2)]
)
def test_every_path_is_what_brute_force_says(cell: str, layers: int, steps: int) -> None:
    wrapped = model(cell, layers)
    ids = torch.tensor([[3, 0, 6, 2], [1, 5, 8, 4]])[:, :steps]
    right, wrong = torch.tensor([2, 7]), torch.tensor([5, 0])
    baseline = torch.randn(2, WIDTH, dtype=torch.float64)
    found = pw.influence_paths(wrapped, ids, 0, (right, wrong), baseline, points=3)
    weight = wrapped.head.weight.detach()
    for row in range(2):
        direction = weight[right[row]] - weight[wrong[row]]
        words = wrapped.embedding.weight[ids[row]].detach()
        expected, units = by_hand.influences(
            cell, wrapped.twins[0].module, words, zero_state(wrapped), lambda h, d=direction: d @ h,
            baseline[row], np.array([1, 3, 5]) / 6, np.full(3, 1 / 3),
        )  # fmt: skip
        assert sorted(found.labels) == sorted(expected)
        assert len(expected) == pw.count_paths(steps=steps, layers=layers, cell=cell)
        values = found.data.influence.sel(sentence=row)
        strongest = max(abs(value) for value in expected.values())
        for label, value in expected.items():
            assert values.sel(path=label).item() == pytest.approx(value, abs=1e-10 * strongest)
        label = max(expected, key=lambda name: abs(expected[name]))
        shares = found.neurons(label, at=label.split(">")[-2]).values[row]
        assert shares == pytest.approx(units[label].detach().numpy(), abs=1e-10 * strongest)
    assert found.certificate.conservation is not None
    assert found.certificate.conservation < 1e-13


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_wherever_one_cuts_the_paths_are_the_same(cell: str) -> None:
    wrapped, ids = model(cell), torch.tensor([[3, 0, 6, 2]])
    found = pw.influence_paths(wrapped, ids, 0, (2, 5), points=20)
    by_label = dict(zip(found.labels, found.influence[0], strict=True))
    case = found.cases[0]
    with torch.no_grad():
        traced = case.trace()
        for cut in range(4):
            influence = halves.influences(traced, cut, case.gradient(traced))[0]
            names = list(labels(Graph(cell, 2, 4), cut))
            assert [by_label[name] for name in names] == pytest.approx(influence.tolist(), rel=1e-9, abs=1e-12)


def test_counts_and_products_are_those_of_the_paper_and_of_arithmetic() -> None:
    assert [pw.count_paths(steps=steps, layers=2) for steps in range(1, 8)] == [16, 152, 1089, 6946, 41561, 238806, 1334284]
    assert 2.6e15 < pw.count_paths(steps=20, layers=2) < 2.7e15
    assert pw.count_paths(steps=1, layers=1, cell="gru") == 3  # r > n, n, z
    assert pw.count_paths(steps=2, layers=1, cell="gru") == 3 * (3 + 1)  # and h > h
    five, eight = Graph("lstm", 2, 5), Graph("lstm", 2, 8)
    assert halves.products(five, 4) == 45_572  # all tangents, no meeting
    assert halves.products(five, halves.best_cut(five)) < 1500
    assert halves.products(eight, 7) > 7.8e6
    assert halves.products(eight, halves.best_cut(eight)) < 17_000


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_conservation_and_completeness(cell: str) -> None:
    """Sums over paths are integrated gradients; these are the change of the quantity, the better the finer the rule."""
    wrapped, ids = model(cell), torch.tensor([[3, 0, 6], [1, 5, 8]])
    baseline = wrapped.embedding.weight[[4, 7]].detach()
    exact = pw.influence_paths(wrapped, ids, 0, (2, 5), baseline, points=150, rule="gauss-legendre")
    logits = wrapped(ids)[:, -1]
    moved = wrapped.embedding(ids).detach()
    moved[:, 0] = baseline
    change = (logits[:, 2] - logits[:, 5]) - (wrapped(moved)[:, -1, 2] - wrapped(moved)[:, -1, 5])
    assert exact.total.values == pytest.approx(change.detach().numpy(), abs=1e-10)
    assert exact.influence.sum(1) == pytest.approx(change.detach().numpy(), abs=1e-10)
    assert exact.certificate.completeness is not None
    assert exact.certificate.completeness < 1e-10
    errors = []
    for points in (100, 200):
        found = pw.influence_paths(wrapped, ids, 0, (2, 5), baseline, points=points)
        errors.append(np.abs(found.total.values - change.detach().numpy()))
    assert errors[0] / errors[1] == pytest.approx([4.0, 4.0], rel=0.25)  # the midpoint rule


def test_single_precision_conserves_too() -> None:
    wrapped, ids = model("lstm", dtype=torch.float32), torch.randint(WORDS, (6, 5))
    single = pw.influence_paths(wrapped, ids, 0, (2, 5), points=20)
    assert single.influence.dtype == np.float32
    assert single.certificate.conservation is not None
    assert single.certificate.conservation < 1e-5
    double = pw.influence_paths(wrapped, ids, 0, (2, 5), points=20, dtype=torch.float64)
    assert double.certificate.conservation is not None
    assert double.certificate.conservation < 1e-12
    strongest = np.abs(double.influence).max()
    assert single.influence == pytest.approx(double.influence, abs=1e-4 * float(strongest))


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_source_later_on_and_a_state_to_begin_with(cell: str) -> None:
    """From word 2 the paths are those of the rest of the sentence, begun in the state that the first words leave."""
    wrapped, ids = model(cell), torch.tensor([[3, 0, 6, 2, 1], [4, 4, 8, 7, 0]])
    later = pw.influence_paths(wrapped, ids, 2, (2, 5), points=30)
    begun = pw.influence_paths(wrapped, ids[:, 2:], 0, (2, 5), points=30, init=ids[:, :2])
    assert later.influence == pytest.approx(begun.influence, abs=1e-12)
    padded = torch.cat((ids, torch.full((2, 2), 8)), dim=1)
    shorter = pw.influence_paths(wrapped, padded, 2, (2, 5), points=30, lengths=[5, 5])
    assert shorter.influence == pytest.approx(later.influence, abs=1e-12)


def test_quantities() -> None:
    wrapped, ids = model("lstm"), torch.tensor([[3, 0, 6], [1, 5, 8]])
    one = pw.influence_paths(wrapped, ids, 0, (2, 5), points=30).influence
    weight = wrapped.head.weight.detach()
    by_call = pw.influence_paths(wrapped, ids, 0, lambda h: h @ (weight[2] - weight[5]), points=30).influence
    assert by_call == pytest.approx(one, abs=1e-13)
    sets = pw.influence_paths(wrapped, ids, 0, (torch.tensor([[2, 4]] * 2), torch.tensor([[5, 0]] * 2)), points=30).influence
    other = pw.influence_paths(wrapped, ids, 0, (4, 0), points=30).influence
    assert sets == pytest.approx((one + other) / 2, abs=1e-13)
    rated = pw.influence_paths(wrapped, ids, 0, pw.log_probability(wrapped, 3), points=60, rule="gauss-legendre")
    moved = wrapped.embedding(ids).detach()
    moved[:, 0] = wrapped.embedding.weight.mean(0)
    change = wrapped(ids)[:, -1].log_softmax(-1)[:, 3] - wrapped(moved)[:, -1].log_softmax(-1)[:, 3]
    assert rated.total.values == pytest.approx(change.detach().numpy(), abs=1e-8)


def test_any_inputs_in_place_of_a_line() -> None:
    wrapped, ids = model("lstm"), torch.tensor([[3, 0, 6], [1, 5, 8]])
    word, baseline = wrapped.embedding(ids)[:, 0].detach(), torch.zeros(2, WIDTH, dtype=torch.float64)
    line = pw.influence_paths(wrapped, ids, 0, (2, 5), baseline, points=4, rule="gauss-legendre")
    nodes, weights = np.polynomial.legendre.leggauss(4)
    values = torch.stack([baseline + (place + 1) / 2 * (word - baseline) for place in nodes], dim=1)
    given = pw.influence_paths(wrapped, ids, 0, (2, 5), inputs=(values, word - baseline, weights / 2))
    assert given.influence == pytest.approx(line.influence, abs=1e-13)
    assert given.certificate.completeness is None
    sampled = pw.influence_paths(wrapped, ids, 0, (2, 5), inputs=(lambda words: words.unsqueeze(1), word - baseline))
    at_word = pw.influence_paths(wrapped, ids, 0, (2, 5), inputs=(word.unsqueeze(1), word - baseline))
    assert sampled.influence == pytest.approx(at_word.influence)


@pytest.mark.parametrize("budget", ["120KB", "55KB"])
def test_chunks_of_sentences_and_of_points_change_nothing(budget: str) -> None:
    wrapped, ids = model("lstm"), torch.randint(WORDS, (7, 3))
    whole = pw.influence_paths(wrapped, ids, 0, (2, 5), points=30)
    some = pw.influence_paths(wrapped, ids, 0, (2, 5), points=30, budget=budget)
    assert some.influence == pytest.approx(whole.influence, abs=1e-12)
    assert some.total.values == pytest.approx(whole.total.values, abs=1e-12)
    label = whole.top(1).path[0]
    assert some.neurons(label).values == pytest.approx(whole.neurons(label).values, abs=1e-12)
    with pytest.raises(
        InputError, match=r"budget 100 bytes is too small for one sentence; the smallest that would do is [\d,]+"
    ) as said:
        pw.influence_paths(wrapped, ids, 0, (2, 5), points=30, budget=100)
    smallest = int(str(said.value).rsplit(" ", 1)[1].replace(",", ""))
    assert pw.influence_paths(wrapped, ids, 0, (2, 5), points=30, budget=smallest).influence == pytest.approx(
        whole.influence, abs=1e-12
    )


def test_the_strongest_and_how_they_stand() -> None:
    wrapped, ids = model("lstm"), torch.tensor([[3, 0, 6], [1, 5, 8], [3, 0, 6], [2, 2, 2]])
    found = pw.influence_paths(wrapped, ids, 0, (2, 5), points=30)
    top = found.top(5)
    mean = found.influence.mean(0)
    assert top.influence.abs().is_monotonic_decreasing
    assert top.influence[0] == pytest.approx(mean[np.abs(mean).argmax()])
    label = top.path[0]
    place = list(found.labels).index(label)
    stands = found.statistics(label)
    ts, shares = [], []
    for row in found.influence:
        others = np.delete(row, place)
        ts.append(((others < row[place]).sum() + 0.5 * (others == row[place]).sum()) / len(others))
        shares.append(row[place] / row[row > 0].sum() if row[place] >= 0 else row[place] / row[row < 0].sum())
    assert stands.t.item() == pytest.approx(np.mean(ts))
    assert stands.share.item() == pytest.approx(np.mean(shares))
    assert top.share[0] == pytest.approx(np.mean(shares))
    assert stands.positive_total.item() == (found.total.values > 0).mean()
    assert stands["rank"].item() == (mean > mean[place]).sum()
    assert stands.attrs["clusters"] == 3  # the first and the third sentence are one
    low, high = stands.t_interval.values
    assert low <= stands.t.item() <= high


def test_neurons_share_a_path_out_and_all_along_a_run_alike() -> None:
    wrapped, ids = model("lstm"), torch.tensor([[3, 0, 6], [1, 5, 8]])
    found = pw.influence_paths(wrapped, ids, 0, (2, 5), points=30)
    label = "x>g0@0>c0@0>h0@0>g1@0>c1@0>c1@1>c1@2>h1@2>q"
    own = found.data.influence.sel(path=label).values
    shares = {at: found.neurons(label, at=at).values for at in ("c0@0", "c1@0", "c1@1", "c1@2", "h1@2")}
    for share in shares.values():
        assert share.sum(1) == pytest.approx(own, abs=1e-13)
    for at in ("c1@1", "c1@2", "h1@2"):
        assert shares[at] == pytest.approx(shares["c1@0"], abs=1e-13)
    assert found.neurons(label).values == pytest.approx(shares["c1@0"], abs=1e-13)  # by default, the longest run
    assert not np.allclose(shares["c0@0"], shares["c1@0"])
    assert found.neurons("x>g0@0>c0@0>c0@1>c0@2>h0@2>g1@2>c1@2>h1@2>q").attrs["at"] == "h0@2"  # three hops, not one


def test_a_population_has_the_paths_of_its_members() -> None:
    models = Population.initial(LanguageModel(words=WORDS, embedding=5, hidden=6, layers=2), [Member("a", 0), Member("b", 1)],
                                ["pytorch"] * 2).to(dtype=torch.float64)  # fmt: skip
    ids = torch.randint(WORDS, (3, 3))
    together = pw.influence_paths(models, ids, 0, (2, 5))
    assert together.data.influence.dims == ("member", "sentence", "path")
    for name in models.names:
        alone = pw.influence_paths(models.select([name]), ids, 0, (2, 5))
        assert together.data.influence.sel(member=name).values == pytest.approx(alone.influence[0], abs=1e-15)
        assert together.total.sel(member=name).values == pytest.approx(alone.total.values[0], abs=1e-15)
    assert list(together.top(2).member) == ["a", "a", "b", "b"]
    assert together.neurons(together.labels[0]).dims == ("member", "sentence", "unit")
    assert together.statistics(together.labels[0]).t.dims == ("member",)


def test_it_leaves_everything_as_it_found_it() -> None:
    wrapped, ids = model("lstm"), torch.randint(WORDS, (3, 3))
    before, random = {name: value.clone() for name, value in wrapped.parameters.items()}, torch.get_rng_state()
    found = pw.influence_paths(wrapped, ids, 0, (2, 5))
    found.neurons(found.labels[0])
    assert all(torch.equal(value, before[name]) and value.grad is None for name, value in wrapped.parameters.items())
    assert torch.equal(torch.get_rng_state(), random)


def test_certificates_warn() -> None:
    wrapped, ids = model("lstm"), torch.tensor([[3, 0, 6]])
    with pytest.warns(UserWarning, match=r"completeness is .*, above 1e-02: .*; points=(\d+) would do better") as said:
        found = pw.influence_paths(wrapped, ids, 0, (2, 5), points=2)
    better = int(str(said[0].message).split("points=")[1].split()[0])
    assert better == found.certificate.points
    again = pw.influence_paths(wrapped, ids, 0, (2, 5), points=better)
    assert again.certificate.completeness is not None
    assert again.certificate.completeness < 1e-2


def test_a_lost_path_breaks_conservation(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped, ids = model("lstm"), torch.tensor([[3, 0, 6]])
    right = halves.Tangents.carry
    monkeypatch.setattr(halves.Tangents, "carry", lambda self, *rest: right(self, *rest) * 0.999)
    with pytest.warns(UserWarning, match="conservation is"):
        pw.influence_paths(wrapped, ids, 0, (2, 5), points=40)


IDS = torch.zeros(2, 4, dtype=torch.int64)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": 4}, "source is 4; it must be a position from 0 to 3, not after the target"),
        ({"source": -1}, "source is -1"),
        ({"source": 3, "lengths": [3, 3]}, "source is 3; it must be a position from 0 to 2"),
        ({"lengths": [3, 4]}, "lengths holds 3, 4; the paths of one call have equally many steps"),
        ({"contrast": (2, 9)}, r"contrast \(wrong\) holds word 9; the vocabulary has words 0 to 8"),
        ({"contrast": (2, 2)}, r"the same word 2 on both sides \(sentence 0\)"),
        ({"contrast": (torch.tensor([1, 2]), torch.tensor([0, 2]))}, r"the same word 2 on both sides \(sentence 1\)"),
        ({"contrast": (torch.tensor([1, 2, 3]), 0)}, r"contrast has a right side of shape \(3,\); give one word, \(2,\)"),
        ({"contrast": 3}, r"contrast is 3; give \(right, wrong\) word ids, or a callable"),
        ({"contrast": (1.5, 2)}, "contrast has torch.float32 on its right side"),
        ({"contrast": lambda h: h}, r"contrast gave \(2, 1, 4\) for hidden states"),
        ({"baseline": torch.zeros(2, 5)}, r"baseline has shape \(2, 5\); give one vector a sentence, \(2, 3\)"),
        ({"baseline": torch.full((3,), torch.nan)}, "baseline has values that are not finite"),
        ({"points": 0}, "points is 0; it must be 1 or more"),
        ({"rule": "simpson"}, "unknown rule 'simpson'"),
        ({"inputs": (torch.zeros(2, 5), torch.zeros(2, 3))}, r"inputs has values of shape \(2, 5\); give \(2, points, 3\)"),
        ({"inputs": (torch.zeros(2, 5, 3), torch.zeros(3))}, "inputs has a direction of shape"),
        ({"inputs": (torch.zeros(2, 5, 3), torch.zeros(2, 3), [1])}, r"inputs has weights of shape \(1,\); give \(5,\)"),
        ({"ids": IDS + 9}, "ids holds word 9"),
        ({"ids": torch.zeros(1, 8, dtype=torch.int64)}, r"8 steps of 2 layers have 7,[\d,]+ paths, .* pw.strongest_paths"),
    ],
)  # fmt: skip
def test_wrong_input_is_named(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"ids": IDS, "source": 0, "contrast": (2, 5), "points": 1} | changes
    with pytest.raises(InputError, match=message):
        pw.influence_paths(model("lstm"), **given)


def test_models_without_paths_are_refused() -> None:
    for module, message in (
        (nn.LSTM(3, 4, bidirectional=True), "influence_paths cannot follow a bidirectional model"),
        (nn.LSTM(3, 4, proj_size=2), "does not follow proj_size"),
    ):
        with pytest.raises(InputError, match=message):
            pw.influence_paths(pw.wrap(recurrent=module), torch.zeros(1, 2, 3), 0, lambda h: h.sum(-1))
    with pytest.raises(InputError, match="without head="):
        pw.influence_paths(pw.wrap(recurrent=nn.LSTM(3, 4)), torch.zeros(1, 2, 3), 0, (0, 1), torch.zeros(3))
    with pytest.raises(InputError, match="baseline is missing"):
        pw.influence_paths(pw.wrap(recurrent=nn.LSTM(3, 4)), torch.zeros(1, 2, 3), 0, lambda h: h.sum(-1))
    spoiled = model("gru")
    with torch.no_grad():
        spoiled.twins[0].module.weight_hh_l1[0, 0] = torch.nan
    with pytest.raises(InputError, match=r"not finite: layer1.recurrent.weight"):
        pw.influence_paths(spoiled, IDS, 0, (2, 5))


def test_labels_that_name_no_path() -> None:
    found = pw.influence_paths(model("lstm"), torch.tensor([[3, 0]]), 0, (2, 5), points=30)
    for label, message in (
        ("g0@0>c0@0", "a label goes from x to q"),
        ("x>g0@0>h0@0>q", r"g0@0 cannot follow x; allowed: f0@0, g0@0, i0@0, o0@0"),
        ("x>g0@0>c0@0>h0@0>g1@0>c1@0>h1@0>q", "q is read from h1@1, not from h1@0"),
        ("x>g0@0>c0@0>o1@0>h1@0>q", "o1@0 cannot follow c0@0; allowed: c0@1, h0@0"),
    ):
        with pytest.raises(InputError, match=message):
            found.neurons(label)
    with pytest.raises(InputError, match="at is 'c9@0'; the states of this path are c0@0"):
        found.neurons("x>g0@0>c0@0>h0@0>g1@0>c1@0>c1@1>h1@1>q", at="c9@0")


def test_labels_of_six_steps_are_made_in_seconds() -> None:
    start = time.perf_counter()
    graph = Graph("lstm", 2, 6)
    assert len(set(labels(graph, halves.best_cut(graph)))) == 238_806
    assert time.perf_counter() - start < 5


def test_a_member_that_is_no_number_is_not_hidden_by_one_that_is() -> None:
    models = Population.initial(
        LanguageModel(words=WORDS, embedding=5, hidden=6), [Member("a", 0), Member("b", 1)], ["pytorch"] * 2
    )
    models.parameters["output.weight"][1, 2], models.parameters["output.weight"][1, 5] = (
        3e38,
        -3e38,
    )  # their difference is infinite
    for order in (("a", "b"), ("b", "a")):
        with pytest.warns(UserWarning, match="conservation is nan"):
            found = pw.influence_paths(models.select(order), torch.randint(WORDS, (2, 3)), 0, (2, 5))
        assert np.isnan(found.certificate.conservation)


def test_a_quantity_that_does_not_change_is_no_reason_to_ask_for_more_points() -> None:
    wrapped, ids = model("lstm", dtype=torch.float32), torch.tensor([[3, 0, 6]])
    same = wrapped.embedding(ids)[:, 0].detach()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pw.influence_paths(wrapped, ids, 0, (2, 5), same)
    assert found.total.item() == 0
    with pytest.warns(UserWarning, match=r"completeness is .* (points=\d{1,5} would do better|try many more points)"):
        pw.influence_paths(wrapped, ids, 0, (2, 5), same + 1e3, points=2)


def test_sentences_that_begin_in_states_of_their_own_are_observations_of_their_own() -> None:
    wrapped, ids = model("gru"), torch.tensor([[3, 0, 6]] * 4)
    state = torch.randn(2, 4, HIDDEN, dtype=torch.float64)
    assert (
        pw.influence_paths(wrapped, ids, 0, (2, 5), points=30).statistics("x>n0@0>h0@0>n1@0>h1@0>h1@1>h1@2>q").attrs["clusters"]
        == 1
    )
    found = pw.influence_paths(wrapped, ids, 0, (2, 5), points=30, init=state)
    assert found.statistics("x>n0@0>h0@0>n1@0>h1@0>h1@1>h1@2>q").attrs["clusters"] == 4


def test_log_probability_is_of_one_model() -> None:
    models = Population.initial(LanguageModel(words=WORDS, embedding=5, hidden=6), [Member("a", 0)], ["pytorch"])
    with pytest.raises(InputError, match="log_probability is a quantity of one model"):
        pw.log_probability(models, 3)
    with pytest.raises(InputError, match="token holds word 9"):
        pw.log_probability(model("lstm"), 9)
