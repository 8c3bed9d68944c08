"""Replacing a phrase, against reading every changed sentence by itself; and what it says about decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import partwise as pw
from partwise.errors import InputError
from partwise.interventions.phrase_replacement import agreement, phrase_replacement
from partwise.models.language_model import LanguageModel
from partwise.population import Member, Population


def model() -> Any:
    torch.manual_seed(2)
    return pw.wrap(embedding=nn.Embedding(9, 3), recurrent=nn.LSTM(3, 5, 2), head=nn.Linear(5, 9))


def test_the_change_is_that_of_the_changed_sentences_read_one_by_one() -> None:
    wrapped = model()
    ids, others, lengths = torch.randint(9, (3, 5)), torch.randint(9, (4, 3, 5)), torch.tensor([5, 3, 4])
    inside = torch.tensor([[0, 1, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 1, 0]]).bool()
    found = phrase_replacement(wrapped, ids, inside, others, torch.tensor([2, 0, 7]), lengths=lengths)
    for row, token in enumerate((2, 0, 7)):

        def score(words: torch.Tensor, row: int = row, token: int = token) -> float:
            logits = wrapped(words[None, : lengths[row]])[0, -1]
            return (logits[token] - logits.mean()).item()

        variants = [[int(other[row, t]) if inside[row, t] else int(ids[row, t]) for t in range(5)] for other in others]
        expected = score(ids[row]) - np.mean([score(torch.tensor(variant)) for variant in variants])
        assert found.change.values[row] == pytest.approx(expected, abs=1e-6)


def test_a_population_changes_as_its_members_do() -> None:
    models = Population.initial(
        LanguageModel(words=9, embedding=4, hidden=6), [Member("a", 0), Member("b", 1)], ["pytorch"] * 2
    )
    ids, others = torch.randint(9, (2, 3, 5)), torch.randint(9, (4, 3, 5))
    together = phrase_replacement(models, ids, (1, 3), others, 2)
    for row, name in enumerate(models.names):
        alone = phrase_replacement(models.select([name]), ids[row], (1, 3), others, 2)
        assert together.change.values[row] == pytest.approx(alone.change.values[0], abs=1e-6)


def test_of_a_linear_reading_a_decomposition_is_exactly_the_change() -> None:
    """A GRU with gates held half open reads almost linearly: what the decomposition says is what replacing shows."""
    torch.manual_seed(0)
    gru, embedding, head = nn.GRU(4, 4), nn.Embedding(9, 4), nn.Linear(4, 9)
    with torch.no_grad():
        for parameter in gru.parameters():
            parameter.mul_(0.01)
        gru.bias_hh_l0.zero_()
        gru.bias_ih_l0.zero_()
        embedding.weight[8] = 0.0  # a word that says nothing
    wrapped, ids = pw.wrap(embedding=embedding, recurrent=gru, head=head), torch.randint(8, (40, 4))
    found = pw.contextual_decomposition(wrapped, ids, (1, 2), variant="murdoch2018")
    blank = pw.contextual_decomposition(wrapped, torch.full((40, 4), 8), (1, 2))
    scores = found.logits().relevant - blank.logits().relevant
    said = (scores.sel(token=3) - scores.mean("token")).values
    tried = phrase_replacement(wrapped, ids, (1, 2), torch.full((1, 40, 4), 8), 3).change.values
    assert agreement(said, tried) > 0.999
    assert said == pytest.approx(tried, abs=0.02 * float(np.abs(tried).max()))


def test_agreement_is_a_correlation() -> None:
    a, b = np.random.Generator(np.random.Philox(0)).standard_normal((2, 3, 20))
    assert agreement(a, b) == pytest.approx([np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)])
    assert agreement(a, 3 * a + 1) == pytest.approx(1)
    assert np.isnan(agreement(np.ones(5), np.arange(5.0)))


def test_wrong_input_is_named() -> None:
    wrapped, ids = model(), torch.zeros(2, 4, dtype=torch.int64)
    with pytest.raises(InputError, match=r"alternatives has shape \(2, 4\); give word ids \(draw, 2, 4\)"):
        phrase_replacement(wrapped, ids, (0, 1), torch.zeros(2, 4, dtype=torch.int64), 0)
    with pytest.raises(InputError, match="alternatives holds word 9"):
        phrase_replacement(wrapped, ids, (0, 1), torch.full((1, 2, 4), 9), 0)
    with pytest.raises(InputError, match="token holds word 10"):
        phrase_replacement(wrapped, ids, (0, 1), torch.zeros(1, 2, 4, dtype=torch.int64), 10)
