"""Graph measures by hand, on matrices whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.errors import InputError
from partwise.methods.connectivity import connectivity, gate_matrix, gini, polar_share, strong_edges
from partwise.models.seq2seq import Seq2Seq
from partwise.population import Member, Population

BLOCKS = np.kron(np.eye(4), np.ones((3, 3)))  # four separate groups of three senders and three receivers


def test_separate_blocks_have_the_modularity_of_the_formula() -> None:
    """Four equal communities: sum over communities of 1/4 - (1/4)^2 = 3/4."""
    result = connectivity(BLOCKS[None], ["a"], threshold=0.5)
    assert result.modularity.item() == pytest.approx(0.75)
    assert (result.out_degree == 3).all()
    assert (result.in_strength == 3).all()
    assert result.gini_in.item() == pytest.approx(0.0)
    whole = connectivity(np.ones((1, 12, 12)), ["a"], threshold=0.5)
    assert whole.modularity.item() == pytest.approx(0.0)


def test_gini_by_hand() -> None:
    assert gini(np.array([0.0, 0.0, 0.0, 8.0])) == pytest.approx(0.75)  # one of four has all: (n - 1) / n
    assert gini(np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx(0.25)
    assert np.isnan(gini(np.zeros(3)))


def test_the_strongest_share_is_taken_per_member() -> None:
    weights = np.arange(1, 101, dtype=float).reshape(1, 10, 10) * np.array([1.0, -5.0])[:, None, None]
    edges = strong_edges(weights, None, 0.05)
    assert edges.sum(axis=(1, 2)).tolist() == [5, 5]
    assert edges[0, 9, 5:].all()


def test_polar_units_are_found_and_noise_is_not() -> None:
    random = np.random.default_rng(0)
    noise = random.standard_normal((1, 400, 300))
    assert polar_share(noise)[0] < 0.01  # three standard errors: .27 %
    noise[0, :100] += 1.0
    assert polar_share(noise)[0] == pytest.approx(0.25, abs=0.01)


@pytest.fixture
def population() -> Population:
    return Population.initial(
        Seq2Seq(source_words=9, target_words=8, hidden=5), [Member("a", 0), Member("b", 1)], ["pytorch"] * 2
    )


def test_a_gate_is_its_block_of_rows(population: Population) -> None:
    whole = population.parameters["encoder.recurrent.weight"].numpy()
    assert (gate_matrix(population, "encoder.recurrent", "update_gate") == whole[:, 5:10]).all()
    result = connectivity(gate_matrix(population, "decoder.input", "reset_gate"), list(population.names), share=0.2)
    assert result.out_degree.sum("sender").values.tolist() == [5, 5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: gate_matrix(p, "encoder.recurrent", "updat_gate"), "Did you mean 'update_gate'"),
        (lambda p: gate_matrix(p, "decoder.output", "update_gate"), "decoder.output has no gates"),
        (lambda p: gate_matrix(p, "encoder.recurent", "update_gate"), "Did you mean 'encoder.recurrent.weight'"),
        (lambda _: connectivity(BLOCKS[None], ["a"], threshold=0.0), "threshold is 0.0; it must be above 0"),
        (lambda _: connectivity(BLOCKS[None], ["a"], share=0.0), "share is 0.0; it is the share of weights to keep"),
    ],
)
def test_wrong_calls(population: Population, call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(population)
