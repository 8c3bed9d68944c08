"""The reader's own model, wrapped: the same logits, the same parameters, and clear refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import partwise as pw
from partwise.errors import InputError


def test_a_wrapped_model_says_what_its_modules_say() -> None:
    embedding, lstm, head = nn.Embedding(9, 4), nn.LSTM(4, 6, 2), nn.Linear(6, 9)
    model = pw.wrap(embedding=embedding, recurrent=lstm, head=head)
    ids = torch.randint(0, 9, (3, 5))
    expected = head(lstm(embedding(ids).transpose(0, 1))[0]).transpose(0, 1)
    assert torch.allclose(model(ids), expected, atol=1e-6)
    assert torch.allclose(model(embedding(ids)), expected, atol=1e-6)
    assert model.parameters["layer1.recurrent.weight"] is lstm.weight_hh_l1
    assert model.parameters["output.bias"] is head.bias


def test_a_stack_of_modules_has_its_layers_numbered_through() -> None:
    parts = [nn.LSTM(4, 6, 2), nn.LSTM(6, 6), nn.LSTM(6, 5)]
    model = pw.wrap(recurrent=parts)
    x = torch.randn(3, 5, 4)
    expected = x.transpose(0, 1)
    for part in parts:
        expected = part(expected)[0]
    assert torch.allclose(model(x), expected.transpose(0, 1), atol=1e-6)
    assert [site for site in model.sites() if site.endswith(".cell")] == [f"layer{layer}.cell" for layer in range(4)]
    recorder = pw.Recorder(["layer3.hidden"])
    assert torch.equal(model(x, tap=recorder), recorder["layer3.hidden"])


def test_a_state_per_layer_and_a_tap_on_the_words() -> None:
    embedding, gru = nn.Embedding(9, 4), nn.GRU(4, 6, 2, batch_first=True)
    model, ids, h = pw.wrap(embedding=embedding, recurrent=gru), torch.randint(0, 9, (3, 5)), torch.randn(2, 3, 6)
    assert torch.allclose(model(ids, [(h[0],), (h[1],)]), gru(embedding(ids), h)[0], atol=1e-6)
    changed = ids.clone()
    changed[:, 2] = 7
    swapped = model(ids, tap=pw.Replace("embedding", lambda _: embedding(changed[:, 2]), step=2))
    assert torch.allclose(swapped, model(changed), atol=1e-6)


def test_parts_that_do_not_fit_are_refused_all_at_once() -> None:
    spoiled = nn.Linear(6, 9)
    with torch.no_grad():
        spoiled.bias[0] = torch.inf
    cases: list[tuple[dict[str, Any], str]] = [
        ({"recurrent": []}, "recurrent is empty"),
        (
            {"recurrent": nn.LSTM(4, 6), "embedding": nn.Embedding(9, 5), "head": nn.Linear(7, 9)},
            "embedding gives 5 numbers a word, but recurrent reads 4; head reads 7 numbers, but recurrent gives 6",
        ),
        ({"recurrent": [nn.LSTM(4, 6), nn.GRU(5, 6)]}, "mixes lstm and gru; .* recurrent 1 reads 5 numbers, but 0 gives 6"),
        ({"recurrent": nn.LSTM(4, 6), "head": nn.Sequential(nn.Linear(6, 9))}, "head is a Sequential; give one nn.Linear"),
        ({"recurrent": nn.LSTM(4, 6), "head": spoiled}, "head.bias has values that are not finite"),
        ({"recurrent": nn.LSTM(4, 6), "head": nn.Linear(6, 9).double()}, "torch.float64 on cpu, recurrent is torch.float32"),
        ({"recurrent": nn.LSTM(4, 6), "embedding": nn.Embedding(9, 4, max_norm=1.0)}, "embedding has max_norm"),
    ]
    for given, message in cases:
        with pytest.raises(InputError, match=message):
            pw.wrap(**given)
    with pytest.raises(InputError, match="wrapped without embedding="):
        pw.wrap(recurrent=nn.LSTM(4, 6))(torch.zeros(1, 2, dtype=torch.int64))
