"""Initial values: the published range, PyTorch's own distributions, and draws that do not depend on each other."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

from partwise.errors import InputError
from partwise.layers import initialise
from partwise.models.seq2seq import Seq2Seq

SIZES = Seq2Seq(source_words=40, target_words=30, encoder_embedding=24, hidden=64).parameters()


def test_uniform_fills_the_published_range() -> None:
    for name, values in initialise.draw(SIZES, "uniform", 0).items():
        assert np.abs(values).max() <= 0.08, name
        if values.size > 500:
            assert values.std() == pytest.approx(0.08 / 3**0.5, rel=0.1), name


def test_pytorch_scheme_draws_as_the_fused_modules_do() -> None:
    ours = initialise.draw(SIZES, "pytorch", 0)
    theirs = {
        "encoder.embedding.weight": nn.Embedding(40, 24).weight,
        "encoder.input.weight": nn.GRU(24, 64).weight_ih_l0,
        "encoder.recurrent.weight": nn.GRU(24, 64).weight_hh_l0,
        "encoder.recurrent.bias": nn.GRU(24, 64).bias_hh_l0,
        "attention.key.weight": nn.Linear(128, 64).weight[:, :64],
        "attention.query.weight": nn.Linear(128, 64).weight[:, 64:],
        "focus.word.weight": nn.Linear(128, 64).weight[:, 64:],
        "decoder.output.weight": nn.Linear(64, 30).weight,
    }
    for name, module_values in theirs.items():
        expected = module_values.detach().numpy()
        assert ours[name].shape == expected.shape, name
        assert ours[name].std() == pytest.approx(expected.std(), rel=0.15), name
        if "embedding" not in name:
            assert np.abs(ours[name]).max() == pytest.approx(np.abs(expected).max(), rel=0.05), name


def test_a_parameter_is_drawn_by_its_name_and_seed_alone() -> None:
    alone = initialise.draw({"decoder.output.weight": SIZES["decoder.output.weight"]}, "uniform", 3)
    together = initialise.draw(SIZES, "uniform", 3)
    assert (alone["decoder.output.weight"] == together["decoder.output.weight"]).all()
    other = initialise.draw(SIZES, "uniform", 4)
    assert (together["decoder.output.weight"] != other["decoder.output.weight"]).any()


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown initialisation 'unifrom'. Did you mean 'uniform'\?"):
        initialise.draw(SIZES, "unifrom", 0)
