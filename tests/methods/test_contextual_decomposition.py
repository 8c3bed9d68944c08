"""Contextual decomposition against a peer, the papers' equations in numpy, and what must hold whatever the weights."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import partwise as pw
from partwise.errors import InputError
from partwise.methods import contextual_decomposition as room
from partwise.methods.contextual_decomposition import fast, shapley, splits
from partwise.methods.contextual_decomposition.variants import INTERACTIONS, VARIANTS, Variant
from partwise.twins.wrapped import Wrapped
from tests.methods import decomposed_by_hand as by_hand

WORDS, WIDTH, HIDDEN = 9, 4, 6
SHORT = {"rel": "r", "irrel": "q", "b": "b"}


def model(cell: str, layers: int = 2, **more: Any) -> Wrapped:
    torch.manual_seed(3)
    kind = nn.LSTM if cell == "lstm" else nn.GRU
    parts = {
        "embedding": nn.Embedding(WORDS, WIDTH),
        "recurrent": kind(WIDTH, HIDDEN, layers, **more),
        "head": nn.Linear(HIDDEN, WORDS),
    }
    for part in parts.values():
        part.double()
        for parameter in part.parameters():
            nn.init.normal_(parameter)  # far from small, so that gates saturate and products matter
    return pw.wrap(**parts)


def layers_of(wrapped: Wrapped) -> list[dict[str, np.ndarray]]:
    module: Any = wrapped.twins[0].module
    kinds = {"ih": "weight_ih", "hh": "weight_hh", "b_ih": "bias_ih", "b_hh": "bias_hh"}
    return [
        {ours: getattr(module, f"{theirs}_l{layer}").detach().numpy() for ours, theirs in kinds.items()}
        for layer in range(module.num_layers)
    ]


def states(result: Any) -> tuple[Tensor, Tensor]:
    return tuple(torch.from_numpy(result.data[side].values) for side in ("relevant", "irrelevant"))  # type: ignore[return-value]


def test_scores_equal_those_of_a_peer() -> None:
    """acd 0.0.2, `cd_text`: every span of one sentence."""
    stored = json.loads((Path(__file__).parent / "data" / "acd_cd_text.json").read_text())
    random = np.random.Generator(np.random.Philox(5))
    weights = {name: torch.from_numpy(random.standard_normal(shape)) for name, shape in stored["shapes"].items()}
    lstm = nn.LSTM(3, 4).double()
    lstm.load_state_dict({name: value for name, value in weights.items() if name.endswith("l0")})
    head = nn.Linear(4, 3).double()
    head.weight.data = weights["out"]
    wrapped = pw.wrap(embedding=nn.Embedding.from_pretrained(weights["embedding"]), recurrent=lstm, head=head)
    spans = stored["scores"]
    bounds = tuple(torch.tensor([span[end] for span in spans]) for end in ("start", "stop"))
    found = pw.contextual_decomposition(wrapped, torch.tensor([stored["ids"]] * len(spans)), bounds).logits()
    for side in ("relevant", "irrelevant"):
        assert found[side].values == pytest.approx(np.array([span[side] for span in spans]), abs=1e-11)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_its_equations(cell: str, name: str) -> None:
    wrapped, kind = model(cell), VARIANTS[name]
    ids = torch.tensor([[3, 0, 6, 2, 5], [1, 1, 8, 4, 0], [3, 0, 6, 2, 5]])
    inside = torch.tensor([[0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [0, 0, 0, 0, 1]]).bool()
    found = states(pw.contextual_decomposition(wrapped, ids, inside, variant=name))
    for row in range(len(ids)):
        phrase = set(inside[row].nonzero().flatten().tolist())
        expected = by_hand.decompose(
            cell,
            layers_of(wrapped),
            wrapped.embedding.weight[ids[row]].detach().numpy(),  # type: ignore[union-attr]
            phrase,
            phrase - {max(phrase)} if kind.bias_product == "inside-but-last" else phrase,
            how=kind.activation,
            relevant={"".join(SHORT[part] for part in pair.split("-")) for pair in kind.interactions},
            output_gate=kind.output_gate,
        )
        for side, values in zip(found, expected, strict=True):
            assert torch.allclose(side[row], torch.from_numpy(values), rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_any_set_of_interactions(cell: str) -> None:
    """Each product alone on the relevant side, in turn: none is taken for another."""
    wrapped, ids = model(cell, layers=1), torch.tensor([[3, 0, 6, 2]])
    words = wrapped.embedding.weight[ids[0]].detach().numpy()  # type: ignore[union-attr]
    found = {}
    for pair in INTERACTIONS:
        kind = Variant("one", activation="shapley", interactions=frozenset({pair}), bias_product="never")
        found[pair] = states(pw.contextual_decomposition(wrapped, ids, (1, 3), variant=kind))[0]
        relevant = {"".join(SHORT[part] for part in pair.split("-"))}
        expected = by_hand.decompose(cell, layers_of(wrapped), words, {1, 2}, (), how="shapley", relevant=relevant)
        assert torch.allclose(found[pair][0], torch.from_numpy(expected[0]), rtol=0, atol=1e-12)
    assert all(not torch.allclose(found[a], found[b]) for a, b in itertools.combinations(found, 2))


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("change", [{}, {"bias_product": "inside-but-last"}, {"bias_product": "always"},
                                    {"bias_product": "never"}, {"initial_state": "relevant"}])  # fmt: skip
def test_the_fast_path_is_the_equations(cell: str, change: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = model(cell, layers=3)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(WORDS, (7, 5), generator=generator).repeat(3, 1)  # sentences that occur more than once
    inside = torch.rand(21, 5, generator=generator) < 0.4
    inside[:, 2] |= ~inside.any(dim=1)
    state = [torch.randn(3, 21, HIDDEN, generator=generator, dtype=torch.float64) for _ in range(2 if cell == "lstm" else 1)]
    kind = VARIANTS["murdoch2018"].with_(**change)
    for init in ("zero", torch.tensor([1, 2]), state):
        quick = states(pw.contextual_decomposition(wrapped, ids, inside, variant=kind, init=init))
        with monkeypatch.context() as patch:
            patch.setattr(room, "is_fast", lambda _: False)
            slow = states(pw.contextual_decomposition(wrapped, ids, inside, variant=kind, init=init))
        for one, other in zip(quick, slow, strict=True):
            assert torch.allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_both_sides_sum_to_what_the_module_says(cell: str) -> None:
    wrapped, ids = model(cell), torch.randint(WORDS, (4, 6))
    hidden = wrapped.twins[0].module(wrapped.embedding(ids).transpose(0, 1))[0].transpose(0, 1)  # type: ignore[misc]
    for name in (*VARIANTS, "shapley"):
        result = pw.contextual_decomposition(wrapped, ids, (2, 4), variant=name)
        assert torch.allclose(sum(states(result)), hidden, rtol=0, atol=1e-12)  # type: ignore[arg-type]
        assert result.certificate <= 1e-13
    scores = result.logits(at=None)
    assert dict(scores.sizes) == {"sentence": 4, "time": 6, "token": WORDS}
    logits = wrapped(ids).detach().numpy()
    bias = wrapped.head.bias.detach().numpy()  # type: ignore[union-attr]
    assert (scores.relevant + scores.irrelevant).values == pytest.approx(logits - bias, abs=1e-12)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_phrase_of_every_word_is_the_whole_and_before_its_first_word_a_phrase_is_nothing(cell: str) -> None:
    wrapped, ids = model(cell), torch.randint(WORDS, (3, 5))
    everything, _ = states(pw.contextual_decomposition(wrapped, ids, (0, 5)))
    hidden = wrapped.twins[0].module(wrapped.embedding(ids).transpose(0, 1))[0].transpose(0, 1)  # type: ignore[misc]
    assert torch.allclose(everything, hidden, rtol=0, atol=1e-12)
    for name in ("murdoch2018", "generalised", "shapley"):
        late, _ = states(pw.contextual_decomposition(wrapped, ids, (3, 5), variant=name))
        assert late[:, :3].abs().max() <= (0 if name == "murdoch2018" else 1e-15)
        assert (late[:, 3].abs().amax(-1) > 1e-3).all()


def test_one_unit_by_hand() -> None:
    """An LSTM of one unit after one word, where every weight is a number one can follow."""
    lstm = nn.LSTM(1, 1).double()
    values = {"weight_ih_l0": [1.0, 2.0, 0.5, -1.0], "weight_hh_l0": [0.0] * 4, "bias_ih_l0": [0.2, 0.0, -0.3, 0.4]}
    for name, numbers in values.items():
        getattr(lstm, name).data = torch.tensor(numbers, dtype=torch.float64).view(getattr(lstm, name).shape)
    lstm.bias_hh_l0.data.zero_()
    x = 0.8

    def sigma(v: float) -> float:
        return 1 / (1 + math.exp(-v))

    i_rel, i_bias = sigma(x + 0.2) - sigma(0.2), sigma(0.2)
    g_rel, g_bias = math.tanh(0.5 * x - 0.3) - math.tanh(-0.3), math.tanh(-0.3)
    products = i_rel * g_rel + i_rel * g_bias + i_bias * g_rel
    expected = {
        "murdoch2018": sigma(0.4 - x) * math.tanh(products + i_bias * g_bias),
        "murdoch2018-exclusive": sigma(0.4 - x)
        * (math.tanh(products) + math.tanh(products + i_bias * g_bias) - math.tanh(i_bias * g_bias))
        / 2,
    }
    word = torch.tensor([[[x]]], dtype=torch.float64)
    for name, value in expected.items():
        result = pw.contextual_decomposition(pw.wrap(recurrent=lstm), word, (0, 1), variant=name)
        assert result.data.relevant.item() == pytest.approx(value, abs=1e-12)


def test_activations_shared_out_over_all_orders() -> None:
    parts = [torch.randn(5, dtype=torch.float64) for _ in range(3)]
    named = {name: part.numpy() for name, part in zip("rqb", parts, strict=True)}
    for function, f, nothing in (("sigmoid", by_hand.sigmoid, 0.5), ("tanh", np.tanh, 0.0)):
        for how, left in (("shapley", nothing), ("shapley-zero", 0.0)):
            found = splits.activate(function, splits.Parts(*parts), how)
            expected = by_hand.all_orders(f, named, left)
            for one, other in zip(found, expected.values(), strict=True):
                assert one.numpy() == pytest.approx(other, abs=1e-14)
    none = splits.activate("sigmoid", splits.Parts(torch.zeros(5), torch.randn(5), torch.randn(5)), "shapley")
    assert none.relevant.abs().max() < 1e-7
    published = splits.activate("sigmoid", splits.Parts(torch.zeros(5), torch.zeros(5), torch.zeros(5)), "shapley-zero")
    assert published.relevant.numpy() == pytest.approx(np.full(5, 1 / 6))  # the published code gives nothing a sixth


@pytest.mark.parametrize("players", [1, 2, 4])
def test_any_number_of_parts_shared_out_over_all_orders(players: int) -> None:
    parts = torch.randn(players, 3, dtype=torch.float64)
    named = {str(number): part.numpy() for number, part in enumerate(parts)} | {"b": np.zeros(3)}
    expected = by_hand.all_orders(by_hand.sigmoid, named, 0.5)
    found = shapley.share_out(torch.sigmoid, torch.cat((parts, torch.zeros(1, 3).double())))
    for number in range(players):
        assert found[number].numpy() == pytest.approx(expected[str(number)], abs=1e-14)
    assert found[-1].numpy() == pytest.approx(np.full(3, 0.5))
    assert found.sum(dim=0).numpy() == pytest.approx(by_hand.sigmoid(parts.sum(dim=0).numpy()))
    others = torch.randn(players, 3, dtype=torch.float64)
    products = shapley.share_product(parts, others)
    for number in range(players):  # bilinear Shapley: half of each cross product to either side
        halves = sum(parts[number] * others[k] + parts[k] * others[number] for k in range(players)) / 2
        assert products[number].numpy() == pytest.approx(halves.numpy(), abs=1e-14)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_shapley_parts_are_symmetric_and_a_word_of_zeros_gets_nothing(cell: str) -> None:
    wrapped = model(cell)
    with torch.no_grad():
        wrapped.embedding.weight[7] = 0.0  # type: ignore[union-attr]
    ids, labels = torch.tensor([[7, 3, 2, 3]]), torch.tensor([[0, 1, 2, 1]])
    result = pw.contextual_decomposition(wrapped, ids, variant="shapley", parts=labels)
    parts = result.data.parts
    assert parts.part.values.tolist() == ["0", "1", "2", "intercept"]
    assert np.abs(parts.sel(part="0").values).max() < 1e-14
    whole = result.data.relevant + result.data.irrelevant
    assert parts.sum("part").values == pytest.approx(whole.values, abs=1e-13)
    renamed = pw.contextual_decomposition(wrapped, ids, variant="shapley", parts=torch.tensor([[2, 0, 1, 0]])).data.parts
    assert renamed.sel(part=["2", "0", "1", "intercept"]).values == pytest.approx(parts.values, abs=1e-13)


@pytest.mark.parametrize("name", ["murdoch2018", "generalised", "shapley"])
def test_padding_and_batching_change_nothing(name: str) -> None:
    wrapped, ids, lengths = model("lstm"), torch.randint(WORDS, (4, 6)), torch.tensor([6, 2, 4, 3])
    start, stop = torch.tensor([1, 0, 3, 1]), torch.tensor([3, 2, 4, 2])
    together = pw.contextual_decomposition(wrapped, ids, (start, stop), lengths=lengths, variant=name)
    scores = together.logits()
    for row, length in enumerate(lengths.tolist()):
        bounds = (int(start[row]), int(stop[row]))
        alone = pw.contextual_decomposition(wrapped, ids[row : row + 1, :length], bounds, variant=name)
        assert together.data.relevant.values[row, :length] == pytest.approx(alone.data.relevant.values[0], abs=1e-13)
        assert np.isnan(together.data.relevant.values[row, length:]).all()
        assert scores.relevant.values[row] == pytest.approx(alone.logits().relevant.values[0], abs=1e-13)


@pytest.mark.parametrize("name", ["murdoch2018", "generalised", "shapley"])
def test_chunks_change_nothing_and_a_budget_is_kept(name: str) -> None:
    wrapped, ids = model("gru"), torch.randint(WORDS, (9, 4))
    whole = pw.contextual_decomposition(wrapped, ids, (1, 3), variant=name)
    with pytest.raises(InputError, match=r"budget 10 bytes is too small for one sentence; it needs at least [\d,]+") as caught:
        pw.contextual_decomposition(wrapped, ids, (1, 3), variant=name, budget=10)
    smallest = int(str(caught.value).rsplit(" ", 1)[1].replace(",", ""))
    one_by_one = pw.contextual_decomposition(wrapped, ids, (1, 3), variant=name, budget=smallest)
    assert one_by_one.data.relevant.values == pytest.approx(whole.data.relevant.values, abs=1e-13)
    tight = pw.contextual_decomposition(wrapped, ids.repeat(100, 1), (1, 3), budget="50KB")
    with pytest.raises(InputError, match=r"all these logits take 518,400 bytes, the budget is 50,000; ask for some tokens"):
        tight.logits(at=None)  # 2 sides x 900 sentences x 4 steps x 9 words x 8 bytes


def test_probabilities_are_softmaxes_over_every_word() -> None:
    wrapped, ids = model("lstm"), torch.randint(WORDS, (5, 4))
    result = pw.contextual_decomposition(wrapped, ids, (0, 2))
    relevant = torch.from_numpy(result.logits(at=2).relevant.values).softmax(-1)
    wanted = torch.tensor([0, 3, 8, 8, 1])
    rows = torch.arange(5)
    assert result.probability(wanted, at=2).values == pytest.approx(relevant[rows, wanted].numpy(), abs=1e-13)
    assert result.probability(3, at=2).values == pytest.approx(relevant[:, 3].numpy(), abs=1e-13)
    model_says = wrapped(ids)[:, -1].softmax(-1)[rows, wanted].detach().numpy()
    assert result.model_probability(wanted).values == pytest.approx(model_says, abs=1e-13)
    some = result.logits(tokens=[8, 0])
    assert some.token.values.tolist() == [8, 0]
    assert some.relevant.values == pytest.approx(result.logits().relevant.values[:, [8, 0]], abs=1e-13)


def test_a_fault_in_the_fast_path_raises_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped, ids = model("lstm"), torch.randint(WORDS, (5, 4))
    right = fast._lstm_step

    def wrong(*arguments: Any) -> Any:
        hidden, cell = right(*arguments)
        return hidden * 1.0001, cell

    monkeypatch.setattr(fast, "_lstm_step", wrong)
    with pytest.warns(UserWarning, match="the decomposition's certificate is .*, above 1e-12"):
        result = pw.contextual_decomposition(wrapped, ids, (0, 2))
    assert result.certificate > 1e-6


def test_it_leaves_everything_as_it_found_it() -> None:
    wrapped, ids = model("lstm"), torch.randint(WORDS, (5, 4))
    before = {name: value.clone() for name, value in wrapped.parameters.items()}
    random, precision = torch.get_rng_state(), torch.backends.cuda.matmul.fp32_precision
    pw.contextual_decomposition(wrapped, ids, (0, 2)).logits()
    assert all(torch.equal(value, before[name]) for name, value in wrapped.parameters.items())
    assert all(value.requires_grad for value in wrapped.parameters.values())
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.backends.cuda.matmul.fp32_precision == precision


def test_single_precision_is_certified_and_double_can_be_asked_for() -> None:
    torch.manual_seed(0)
    wrapped = pw.wrap(embedding=nn.Embedding(WORDS, 8), recurrent=nn.LSTM(8, 16, 2), head=nn.Linear(16, WORDS))
    ids = torch.randint(WORDS, (20, 12))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        single = pw.contextual_decomposition(wrapped, ids, (3, 5))
        double = pw.contextual_decomposition(wrapped, ids, (3, 5), dtype=torch.float64)
    assert single.data.relevant.dtype == np.float32
    assert double.data.relevant.dtype == np.float64
    assert 1e-10 < single.certificate < 1e-6
    assert double.certificate < 1e-14
    assert single.data.relevant.values == pytest.approx(double.data.relevant.values, abs=1e-6)


IDS = torch.zeros(2, 4, dtype=torch.int64)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"phrase": (2, 2)}, r"phrase \(2, 2\) of sentence 0 is empty or outside its 4 words"),
        ({"phrase": (1, 5)}, r"phrase \(1, 5\) of sentence 0 is empty or outside"),
        ({"phrase": (torch.tensor([0, 1]), torch.tensor([1, 4])), "lengths": [4, 3]}, r"phrase \(1, 4\) of sentence 1"),
        ({"phrase": torch.zeros(2, 4, dtype=torch.bool)}, "phrase holds no word of sentence 0"),
        ({"phrase": torch.ones(2, 3, dtype=torch.bool)}, r"give \(start, stop\), or a bool mask of shape \(2, 4\)"),
        (
            {"phrase": torch.ones(2, 4, dtype=torch.bool), "lengths": [4, 3]},
            "phrase holds position 3 of sentence 1, which has 3",
        ),
        ({"phrase": 3}, r"phrase is 3; give \(start, stop\)"),
        ({"phrase": (0, 1), "ids": IDS + 9}, "ids holds word 9; the vocabulary has words 0 to 8"),
        ({"phrase": (0, 1), "ids": IDS - 1}, "ids holds word -1"),
        ({"phrase": (0, 1), "ids": IDS[:, :0]}, "give at least one sentence of one word"),
        ({"phrase": (0, 1), "ids": torch.zeros(2, 4, 3)}, r"vectors must be \(batch, time, 4\)"),
        ({"phrase": (0, 1), "lengths": [4, 5]}, "lengths holds 5; a sentence here has 1 to 4 words"),
        ({"phrase": (0, 1), "init": "last"}, 'init is .last.; give "zero", word ids'),
        ({"phrase": (0, 1), "init": torch.zeros(2, 1, 6)}, "init has shapes .*; give h and c of shape"),
        ({"phrase": (0, 1), "variant": "murdock2018"}, "unknown variant 'murdock2018'. Did you mean 'murdoch2018'"),
        ({"phrase": (0, 1), "budget": "1 apple"}, 'budget is .1 apple.; give bytes, or text like "1GB"'),
        ({"phrase": (0, 1), "parts": IDS}, "parts are shared out by variant \"shapley\"; found variant 'murdoch2018'"),
        ({"phrase": (0, 1), "parts": IDS, "variant": "shapley"}, "give either a phrase or parts, not both"),
        ({"parts": IDS + 8, "variant": "shapley"}, "parts holds 8 to 8; number the parts from 0, at most 8"),
        ({"phrase": (0, 1), "dtype": torch.bfloat16}, "needs float32 or float64"),
    ],
)
def test_wrong_input_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        pw.contextual_decomposition(model("lstm"), **({"ids": IDS} | given))


def test_models_that_cannot_be_followed_are_refused() -> None:
    cases = [
        (lambda: pw.wrap(recurrent=nn.LSTM(4, 6, bidirectional=True)), "bidirectional"),
        (lambda: pw.wrap(recurrent=nn.LSTM(4, 6, proj_size=3)), "does not follow proj_size"),
        (lambda: nn.LSTM(4, 6), "reads language models: what pw.wrap"),
    ]
    for make, message in cases:
        with pytest.raises(InputError, match=message):
            pw.contextual_decomposition(make(), torch.zeros(1, 2, 4), (0, 1))
    spoiled = model("lstm")
    with torch.no_grad():
        spoiled.twins[0].module.weight_hh_l0[0, 0] = torch.nan  # type: ignore[index,operator]
    with pytest.raises(InputError, match=r"weights that are not finite: layer0.recurrent.weight"):
        pw.contextual_decomposition(spoiled, IDS, (0, 1))
    sent_back = pw.wrap(recurrent=nn.LSTM(4, 6, 2, dropout=0.5).eval())
    sent_back.twins[0].module.train()
    with pytest.raises(InputError, match=r"in training mode with dropout 0.5"):
        pw.contextual_decomposition(sent_back, torch.zeros(1, 2, 4), (0, 1))
    headless = pw.wrap(recurrent=nn.LSTM(4, 6))
    result = pw.contextual_decomposition(headless, torch.randn(1, 2, 4), (0, 1))
    with pytest.raises(InputError, match="wrapped without head="):
        result.logits()
    with pytest.raises(InputError, match="at is 7, but sentence 0 has 4 words"):
        pw.contextual_decomposition(model("gru"), IDS, (0, 1)).logits(at=7)
    with pytest.raises(InputError, match="token holds word 11"):
        pw.contextual_decomposition(model("gru"), IDS, (0, 1)).probability(11)


def test_variants_say_what_is_wrong_with_them() -> None:
    with pytest.raises(InputError, match=r"unknown activation 'shaply'. Did you mean 'shapley'.*; .*unknown bias_product 'in'"):
        Variant("mine", activation="shaply", bias_product="in")
    with pytest.raises(InputError, match="unknown interaction 'rel-bias'"):
        VARIANTS["murdoch2018"].with_(interactions=frozenset({"rel-bias"}))
    assert VARIANTS["generalised"].with_(bias_product="never").name == "generalised (bias_product=never)"


def test_the_named_variants_are_what_was_published() -> None:
    """Murdoch et al. 2018, section 3.2; and the configuration of the generalised decomposition's number-agreement runs:
    rel-rel, rel-b and rel-irrel of which only those with a relevant source count, the output gate decomposed."""
    murdoch, generalised = VARIANTS["murdoch2018"], VARIANTS["generalised-published"]
    assert murdoch.interactions == {"rel-rel", "rel-b", "b-rel"}
    assert generalised.interactions == {"rel-rel", "rel-b", "b-rel", "irrel-rel"} == VARIANTS["generalised"].interactions
    assert (murdoch.output_gate, generalised.output_gate, VARIANTS["generalised"].output_gate) == (False, True, True)
    assert (murdoch.bias_product, VARIANTS["murdoch2018-exclusive"].bias_product) == ("inside", "inside-but-last")
    assert (generalised.activation, VARIANTS["generalised"].activation) == ("shapley-zero", "shapley")


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_words_to_read_beforehand_are_the_state_that_the_module_is_in_after_them(cell: str) -> None:
    wrapped, ids = model(cell), torch.randint(WORDS, (3, 5))
    module: Any = wrapped.twins[0].module
    before = torch.tensor([4, 0, 7])
    _, last = module(wrapped.embedding(before).unsqueeze(1))  # type: ignore[misc]
    state = tuple(part.detach() for part in last) if cell == "lstm" else last.detach()
    by_words, by_state = (pw.contextual_decomposition(wrapped, ids, (1, 3), init=init) for init in (before, state))
    assert by_words.data.relevant.values == pytest.approx(by_state.data.relevant.values, abs=1e-13)
    longer = pw.contextual_decomposition(wrapped, torch.cat((before.expand(3, 3), ids), dim=1), (4, 6))
    assert by_words.data.relevant.values == pytest.approx(longer.data.relevant.values[:, 3:], abs=1e-13)
