"""The encoder-decoder against an independent model, and against itself with more padding."""

from __future__ import annotations

import pytest
import torch

from partwise.errors import InputError
from partwise.layers.tap import Recorder, Replace
from partwise.models.seq2seq import Seq2Seq
from partwise.population import Member, Population
from tests.plain import plain_copy

EVERY = [
    {},
    {"cell": "lstm"},
    {"full_focus": False},
    {"full_focus": False, "attention": "post-rnn"},
    {"full_focus": False, "attention": "post-rnn", "cell": "lstm", "decoder_embedding": 3},
    {"decoder_embedding": 5},
]


def population(**sizes: object) -> Population:
    architecture = Seq2Seq(source_words=9, target_words=8, encoder_embedding=4, hidden=7, **sizes)
    return Population.initial(architecture, [Member("a", 0), Member("b", 1)], ["pytorch"] * 2).to(dtype=torch.float64)


SOURCE = torch.tensor([[3, 4, 5, 8], [6, 7, 8, 0], [2, 8, 0, 0]])
LENGTHS = torch.tensor([4, 3, 2])


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_scores_and_attention_equal_the_independent_model(cell: str) -> None:
    models = population(cell=cell)
    for name in ("a", "b"):
        ours = models.architecture.forward(models.member(name), SOURCE, LENGTHS, 5)
        for row, length in enumerate(LENGTHS):
            scores, attention = plain_copy(models, name)(SOURCE[row : row + 1, :length], 5)
            torch.testing.assert_close(ours.logits[row], scores[0], rtol=1e-12, atol=1e-13)
            torch.testing.assert_close(ours.attention[row, :, :length], attention[0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("sizes", EVERY)
def test_padding_changes_nothing_and_members_do_not_mix(sizes: dict[str, object]) -> None:
    models = population(**sizes)
    stacked = models.architecture.forward(models.weights(), SOURCE.expand(2, -1, -1), LENGTHS.expand(2, -1), 4)
    assert (stacked.attention[:, 2, :, 2:] == 0).all()
    for i, name in enumerate(models.names):
        for row, length in enumerate(LENGTHS):
            alone = models.architecture.forward(models.member(name), SOURCE[row, :length], LENGTHS[row], 4)
            torch.testing.assert_close(stacked.logits[i, row], alone.logits, rtol=1e-12, atol=1e-13)
            assert torch.equal(stacked.chosen[i, row], alone.chosen)


@pytest.mark.parametrize("sizes", EVERY)
def test_every_site_can_be_recorded_and_replaced(sizes: dict[str, object]) -> None:
    models = population(**sizes)
    model, weights = models.architecture, models.member("a")
    recorder = Recorder(model.sites())
    plain = model.forward(weights, SOURCE[:1], LENGTHS[:1], 4, tap=recorder)
    for site in model.sites():
        assert recorder[site].shape[:2] == (1, 4)
        changed = model.forward(weights, SOURCE[:1], LENGTHS[:1], 4, tap=Replace(site, lambda value: value + 0.5, step=1))
        assert not torch.equal(changed.logits, plain.logits), site
        if not site.startswith("encoder"):
            assert torch.equal(changed.logits[:, 0], plain.logits[:, 0]), site


def test_teacher_forcing_feeds_the_true_words() -> None:
    models = population()
    forced = torch.tensor([[4, 5, 6, 3]])
    both = torch.tensor([[True], [False]])
    out = models.architecture.forward(
        models.weights(), SOURCE[:1].expand(2, -1, -1), LENGTHS[:1].expand(2, -1), 4, forced.expand(2, -1, -1), both
    )
    recorder = Recorder(["decoder.embedding"])
    models.architecture.forward(models.member("a"), SOURCE[:1], LENGTHS[:1], 4, forced, both[0], recorder)
    table = models.member("a").parameters["decoder.embedding.weight"]
    torch.testing.assert_close(recorder["decoder.embedding"][0], table[torch.tensor([2, 4, 5, 6])])
    free = models.architecture.forward(models.member("b"), SOURCE[:1], LENGTHS[:1], 4)
    torch.testing.assert_close(out.logits[1], free.logits)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"cell": "grue"}, r"unknown cell 'grue'. Did you mean 'gru'\?"),
        ({"attention": "none"}, "unknown attention 'none'"),
        ({"attention": "post-rnn"}, "full_focus weighs the context before the recurrence, so it needs attention pre-rnn"),
    ],
)
def test_impossible_sizes_are_refused(sizes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        population(**sizes)


def test_parts_of_a_model_are_named_or_refused() -> None:
    layout = population().layout
    assert layout.select(["decoder.output"]).sum() == 8 * 7 + 8
    assert layout.select(["encoder", "decoder.output.bias"]).sum() == 9 * 4 + 21 * 4 + 21 + 21 * 7 + 21 + 8
    with pytest.raises(InputError, match=r"unknown part of the model 'encodr'. Did you mean 'encoder'\?"):
        layout.select(["encodr"])


def test_members_are_selected_by_name_or_refused() -> None:
    models = population()
    assert torch.equal(models.select(["b"]).store, models.store[1:])
    with pytest.raises(InputError, match="unknown member 'c'"):
        models.select(["c"])
    with pytest.raises(InputError, match="only populations of one architecture"):
        Population.concatenate([models, population(cell="lstm")])
