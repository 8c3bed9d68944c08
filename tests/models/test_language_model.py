"""The language model is its equations: equal to fused modules, open to taps, and the same with a member axis as without."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import partwise as pw
from partwise.errors import InputError
from partwise.models.language_model import LanguageModel
from partwise.population import Member, Population
from partwise.training import checkpoint

SIZES = [{}, {"layers": 3}, {"cell": "gru", "layers": 2}, {"tied": True}]


def population(**sizes: object) -> Population:
    architecture = LanguageModel(words=9, embedding=5, hidden=5, **sizes)  # type: ignore[arg-type]
    return Population.initial(architecture, [Member("a", 0), Member("b", 1)], ["pytorch"] * 2).to(dtype=torch.float64)


def modules(models: Population, name: str) -> tuple[nn.Embedding, nn.Module, nn.Linear]:
    """The member's parameters in PyTorch's own modules."""
    sizes, own = models.architecture, models.member(name).parameters
    assert isinstance(sizes, LanguageModel)
    kind = nn.LSTM if sizes.cell == "lstm" else nn.GRU
    recurrent = kind(5, 5, sizes.layers, batch_first=True).double()
    names = {"weight_ih": "input.weight", "weight_hh": "recurrent.weight", "bias_ih": "input.bias", "bias_hh": "recurrent.bias"}
    state = {
        f"{theirs}_l{layer}": own[f"layer{layer}.{ours}"] for layer in range(sizes.layers) for theirs, ours in names.items()
    }
    recurrent.load_state_dict(state)
    head = nn.Linear(5, 9).double()
    head.load_state_dict({"weight": own["output.weight"], "bias": own["output.bias"]})
    return nn.Embedding.from_pretrained(own["embedding.weight"]), recurrent, head


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_it_says_what_fused_modules_say_from_any_state(sizes: dict) -> None:
    models = population(**sizes)
    ids = torch.randint(9, (4, 6))
    first = models.architecture.forward(models.weights(), ids.expand(2, 4, 6))
    second = models.architecture.forward(models.weights(), ids.flip(1).expand(2, 4, 6), first.state)
    for row, name in enumerate(models.names):
        embedding, recurrent, head = modules(models, name)
        out, state = recurrent(embedding(ids))
        assert torch.allclose(first.logits[row], head(out), rtol=0, atol=1e-13)
        again, _ = recurrent(embedding(ids.flip(1)), state)
        assert torch.allclose(second.logits[row], head(again), rtol=0, atol=1e-13)
        alone = models.architecture.forward(models.member(name), ids)
        assert torch.allclose(alone.logits, first.logits[row], rtol=0, atol=1e-13)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_site_is_open_and_what_is_replaced_is_carried_on(sizes: dict) -> None:
    models, ids = population(**sizes), torch.randint(9, (2, 4, 6))
    recorder = pw.Recorder(models.architecture.sites())
    said = models.architecture.forward(models.weights(), ids, tap=recorder)
    for site in models.architecture.sites():
        assert recorder[site].shape[:3] == (2, 4, 6), site
    assert torch.equal(recorder["logits"], said.logits)

    def zero(value: Tensor) -> Tensor:
        return torch.zeros_like(value)

    changed = models.architecture.forward(models.weights(), ids, tap=pw.Replace("layer0.hidden", zero, step=2))
    differs = (changed.logits - said.logits).abs().amax(dim=(0, 1, 3)) > 1e-9
    assert differs.tolist() == [False, False, True, True, True, True]


def test_a_tied_model_has_one_table_under_two_names(tmp_path) -> None:  # type: ignore[no-untyped-def]
    models = population(tied=True)
    assert models.parameters["output.weight"].data_ptr() == models.parameters["embedding.weight"].data_ptr()
    assert "output.weight" not in models.own_parameters
    checkpoint.save(tmp_path / "tied", models)
    again = pw.load(tmp_path / "tied")
    assert torch.equal(again.store, models.store)
    assert torch.equal(again.parameters["output.weight"], models.parameters["embedding.weight"])


def test_initial_values_follow_pytorchs_example() -> None:
    architecture = LanguageModel(words=300, embedding=40, hidden=60)
    drawn = Population.initial(architecture, [Member("a", 0)], ["pytorch"]).parameters
    for name, reach in (("embedding.weight", 0.1), ("output.weight", 0.1), ("layer0.recurrent.weight", 60**-0.5)):
        assert 0.98 * reach < float(drawn[name].abs().max()) <= reach, name
    assert not drawn["output.bias"].any()


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="unknown cell 'rnn'"):
        LanguageModel(words=5, cell="rnn")
    with pytest.raises(InputError, match="tied needs an embedding as wide as the hidden state; found embedding 20, hidden 30"):
        LanguageModel(words=5, embedding=20, hidden=30, tied=True)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("name", ["murdoch2018", "generalised", "shapley"])
def test_a_population_is_decomposed_as_its_members_are(cell: str, name: str) -> None:
    models, ids = population(cell=cell, layers=2), torch.randint(9, (5, 6))
    together = pw.contextual_decomposition(models, ids, (2, 4), variant=name, init=[1, 3])
    assert together.data.relevant.dims == ("member", "sentence", "time", "unit")
    scores, chances = together.logits(), together.probability(3)
    for member in models.names:
        embedding, recurrent, head = modules(models, member)
        wrapped = pw.wrap(embedding=embedding, recurrent=recurrent, head=head)
        alone = pw.contextual_decomposition(wrapped, ids, (2, 4), variant=name, init=[1, 3])
        assert together.data.sel(member=member).relevant.values == pytest.approx(alone.data.relevant.values, abs=1e-13)
        assert scores.sel(member=member).irrelevant.values == pytest.approx(alone.logits().irrelevant.values, abs=1e-13)
        assert chances.sel(member=member).values == pytest.approx(alone.probability(3).values, abs=1e-13)


def test_members_may_read_sentences_of_their_own() -> None:
    models = population()
    ids = torch.randint(9, (2, 5, 6))
    ids[:, 3] = ids[:, 1]  # the same sentence twice
    together = pw.contextual_decomposition(models, ids, (2, 4))
    for row, member in enumerate(models.names):
        alone = pw.contextual_decomposition(models.select([member]), ids[row], (2, 4))
        assert together.data.relevant.sel(member=member).values == pytest.approx(alone.data.relevant.values[0], abs=1e-14)
    assert together.certificate == together.data.error.max()
    with pytest.raises(InputError, match=r"give \(batch, time\), or \(2, batch, time\): sentences of their own"):
        pw.contextual_decomposition(models, ids.repeat(2, 1, 1), (2, 4))
