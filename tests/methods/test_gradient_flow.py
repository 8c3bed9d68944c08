"""Gradient flow against explicit Jacobians, multiplied one word after the other."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import partwise as pw
from partwise.errors import InputError
from partwise.methods.gradient_flow import gradient_flow
from partwise.models.language_model import LanguageModel
from partwise.population import Member, Population

HIDDEN = 4


def model(cell: str, layers: int = 1) -> Any:
    torch.manual_seed(2)
    kind = nn.LSTM if cell == "lstm" else nn.GRU
    parts = {"embedding": nn.Embedding(9, 3), "recurrent": kind(3, HIDDEN, layers), "head": nn.Linear(HIDDEN, 9)}
    for part in parts.values():
        for parameter in part.double().parameters():
            nn.init.normal_(parameter)
    return pw.wrap(**parts)


def one_word(wrapped: Any, word: Tensor, state: Tensor) -> Tensor:
    """The flat state (h of all layers, then c of all layers) after one word more, by the fused module."""
    module = wrapped.twins[0].module
    parts = [part.reshape(module.num_layers, 1, HIDDEN) for part in state.split(module.num_layers * HIDDEN)]
    _, new = module(wrapped.embedding(word).view(1, 1, -1), tuple(parts) if len(parts) == 2 else parts[0])
    return torch.cat([part.flatten() for part in new]) if isinstance(new, tuple) else new.flatten()


@pytest.mark.parametrize(("cell", "layers"), [("lstm", 1), ("gru", 1), ("gru", 2), ("lstm", 2)])
def test_norms_of_the_product_of_jacobians(cell: str, layers: int) -> None:
    wrapped, ids = model(cell, layers), torch.tensor([[3, 0, 6, 2, 5, 1], [1, 1, 8, 4, 0, 7]])
    start, stop, width = 1, 4, layers * HIDDEN
    found = gradient_flow(wrapped, ids, start, stop, token=7, signs=20_000)
    for row, sentence in enumerate(ids):
        state = torch.zeros(width * (2 if cell == "lstm" else 1), dtype=torch.float64)
        for word in sentence[: start + 1]:
            state = one_word(wrapped, word, state)
        beginning = state
        product, hidden_only = torch.eye(len(state)).double(), torch.eye(width).double()
        for word in sentence[start + 1 : stop + 1]:
            jacobian: Any = torch.autograd.functional.jacobian(lambda s, w=word: one_word(wrapped, w, s), state)
            product, hidden_only = jacobian @ product, jacobian[:width, :width] @ hidden_only
            state = one_word(wrapped, word, state)
        assert found.state.values[row] == pytest.approx(float(product.norm()) / len(state) ** 0.5, rel=0.03)
        if layers == 1:
            assert found.hidden.values[row] == pytest.approx(float(hidden_only.norm()) / width**0.5, rel=0.03)

        def surprise(s: Tensor, words: Tensor = sentence[start + 1 : stop + 1]) -> Tensor:
            for word in words:
                s = one_word(wrapped, word, s)
            return -wrapped.head(s[width - HIDDEN : width]).log_softmax(-1)[7]

        message: Any = torch.autograd.functional.jacobian(surprise, beginning)
        assert found.message.values[row] == pytest.approx(float(message.norm()), rel=1e-9)


def test_with_one_word_between_there_is_one_jacobian_and_the_cell_makes_no_difference_to_the_hidden_path() -> None:
    wrapped, ids = model("lstm"), torch.tensor([[3, 0, 6]])
    flow = gradient_flow(wrapped, ids, 1, 2, token=0, signs=50)
    assert 0 < flow.hidden.item() < 10
    again = gradient_flow(wrapped, ids, 1, 2, token=0, signs=50)
    assert again.identical(flow)


def test_a_population_flows_as_its_members_do() -> None:
    models = Population.initial(
        LanguageModel(words=9, embedding=4, hidden=6), [Member("a", 0), Member("b", 1)], ["pytorch"] * 2
    )
    ids = torch.randint(9, (2, 5, 6))
    together = gradient_flow(models, ids, 1, 4, token=2)
    for row, name in enumerate(models.names):
        alone = gradient_flow(models.select([name]), ids[row], 1, 4, token=2)
        for key in together:
            assert together[key].values[row] == pytest.approx(alone[key].values[0], rel=1e-5)
    one_by_one = gradient_flow(models, ids, 1, 4, token=2, budget="150KB")
    for key in together:
        assert one_by_one[key].values == pytest.approx(together[key].values, rel=1e-5)
    with pytest.raises(InputError, match=r"budget 1,000 bytes is too small for one sentence; it needs at least 138,240"):
        gradient_flow(models, ids, 1, 4, token=2, budget=1000)
    assert all(not value.requires_grad and value.grad is None for value in models.parameters.values())


def test_wrong_places_and_words_are_refused() -> None:
    wrapped, ids = model("lstm"), torch.zeros(2, 4, dtype=torch.int64)
    for start, stop in ((2, 2), (-1, 2), (0, 4)):
        with pytest.raises(InputError, match=rf"start is {start} and stop {stop}; they must follow each other within the 4"):
            gradient_flow(wrapped, ids, start, stop, token=0)
    with pytest.raises(InputError, match="token holds word 9"):
        gradient_flow(wrapped, ids, 0, 1, token=9)
    with pytest.raises(InputError, match="without head="):
        gradient_flow(pw.wrap(recurrent=nn.LSTM(3, 4)), torch.zeros(1, 4, 3), 0, 1, token=0)
