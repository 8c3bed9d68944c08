"""Probes and functional groups, against scipy's minimiser, brute force, and sites whose answer was planted."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from partwise.errors import InputError
from partwise.methods import _softmax_regression as regression
from partwise.methods._probe_data import ProbeData, probe_data
from partwise.methods.diagnostic_probe import diagnostic_probe
from partwise.methods.functional_group import GroupRule, functional_group, group_in, rank
from partwise.models.seq2seq import Seq2Seq
from partwise.population import Member, Population
from partwise.tasks import lookup_tables
from partwise.tasks._encoding import Vocabulary

RANDOM = np.random.default_rng(7)


def by_scipy(x: np.ndarray, label: np.ndarray, classes: int, penalty: float) -> np.ndarray:
    """Minimum of mean cross entropy + penalty / 2 |W|^2 by L-BFGS, with scipy's own gradient by hand: (label, unit + bias)."""
    inputs = np.column_stack((x, np.ones(len(x))))
    wanted = np.eye(classes)[label]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(classes, -1)
        scores = inputs @ weights.T
        scores -= scores.max(1, keepdims=True)
        log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        free = weights.copy()
        free[:, -1] = 0
        gradient = (np.exp(log_p) - wanted).T @ inputs / len(x) + penalty * free
        return -(wanted * log_p).sum() / len(x) + penalty / 2 * (free**2).sum(), gradient.ravel()

    found = minimize(
        loss, np.zeros(classes * inputs.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-10}
    )
    return found.x.reshape(classes, -1)


def noisy(places: int = 80, units: int = 5, classes: int = 3, members: int = 2) -> ProbeData:
    """Labels that the first units carry, blurred, so that no probe is perfect."""
    label = RANDOM.integers(0, classes, places)
    values = RANDOM.standard_normal((members, places, units)).astype(np.float32)
    values[:, :, :classes] += 1.5 * np.eye(classes, dtype=np.float32)[label]
    sentence = np.repeat(np.arange(places // 2), 2)
    return ProbeData(torch.from_numpy(values), torch.from_numpy(label), sentence, tuple("abc"[:classes]))


@pytest.mark.parametrize("penalty", [1e-1, 1e-2])
def test_the_solver_finds_the_minimum_that_scipy_finds(penalty: float) -> None:
    data = noisy()
    ours = regression.fit(data.values.double(), data.label[None], 3, penalty, steps=2000).numpy()
    for member in range(2):
        theirs = by_scipy(data.values[member].numpy().astype(float), data.label.numpy(), 3, penalty)
        assert ours[member, :, :-1] == pytest.approx(theirs[:, :-1], abs=1e-4)


def test_the_stated_number_of_steps_is_enough_for_the_stated_penalty() -> None:
    """The main rule's budget leaves test accuracy where the full minimum has it."""
    data = noisy(places=400)
    x, label = data.values.numpy().astype(float), data.label.numpy()
    short = regression.fit(data.values, data.label[None], 3, 1e-3)
    for member in range(2):
        theirs = by_scipy(x[member], label, 3, 1e-3)
        right = ((x[member] @ theirs[:, :-1].T + theirs[:, -1]).argmax(1) == label).mean()
        assert float(regression.accuracy(short, data.values, data.label[None])[member]) == pytest.approx(right, abs=0.006)


def test_no_sentence_is_on_both_sides_and_the_split_is_the_seeds() -> None:
    data = noisy()
    test = data.split(3).numpy()
    assert not set(data.sentence[test]) & set(data.sentence[~test])
    assert len(set(data.sentence[test])) == 10  # a quarter of 40
    assert (data.split(3).numpy() == test).all()
    assert not (data.split(4).numpy() == test).all()


def test_shuffled_labels_are_the_same_labels_elsewhere() -> None:
    data = noisy()
    shuffled = data.shuffled(0)
    assert sorted(shuffled.label.tolist()) == sorted(data.label.tolist())
    assert shuffled.label.tolist() != data.label.tolist()


def planted(carriers: int, units: int = 12, places: int = 240) -> ProbeData:
    """The label is one of 2^carriers; carrier k says bit k, loudly; all other units are quiet noise."""
    label = RANDOM.integers(0, 2**carriers, places)
    values = 0.05 * RANDOM.standard_normal((1, places, units)).astype(np.float32)
    chosen = RANDOM.permutation(units)[:carriers]
    for bit, unit in enumerate(chosen):
        values[0, :, unit] += 2.0 * ((label >> bit) & 1) - 1.0
    classes = tuple(str(number) for number in range(2**carriers))
    return ProbeData(torch.from_numpy(values), torch.from_numpy(label), np.arange(places), classes)


@pytest.mark.parametrize("carriers", [1, 2, 3])
@pytest.mark.parametrize("ranking", ["sum", "max"])
@pytest.mark.parametrize("readout", ["refit", "mask"])
def test_the_group_is_the_units_that_carry_the_label(carriers: int, ranking: str, readout: str) -> None:
    data = planted(carriers)
    found = group_in(data, GroupRule(ranking=ranking, readout=readout), seed=0).isel(member=0)
    loud = data.values[0].std(dim=0).numpy() > 0.5
    assert found["size"].item() == carriers
    assert (found.in_group.values == loud).all()
    assert found.full_accuracy.item() == 1.0
    assert found.group_accuracy.item() >= 0.95
    assert found.found_by_shap.item() == 1.0
    chance = 2.0**-carriers
    assert found.shuffled_accuracy.item() < chance + 0.25
    assert found.random_accuracy.item() < 1.0


@pytest.mark.parametrize("readout", ["refit", "mask"])
def test_growth_is_the_plain_loop_over_sizes(readout: str) -> None:
    """One unit more at a time, every probe by scipy's minimiser, until 95 % of the full test accuracy."""
    data, penalty = noisy(places=200, units=6), 1e-2
    rule = GroupRule(readout=readout, penalty=penalty, steps=2000)
    found = group_in(data, rule, seed=1)
    test = data.split(1).numpy()
    label = data.label.numpy()
    for member in range(2):
        x = data.values[member].numpy().astype(float)

        def accuracy(weights: np.ndarray, units: list[int], x: np.ndarray = x) -> float:
            return float(((x[test][:, units] @ weights[:, :-1].T + weights[:, -1]).argmax(1) == label[test]).mean())

        full = by_scipy(x[~test], label[~test], 3, penalty)
        order = np.argsort(-np.abs(full[:, :-1]).sum(0), kind="stable").tolist()
        goal = 0.95 * accuracy(full, list(range(6)))
        for size in range(1, 7):
            units = order[:size]
            again = by_scipy(x[~test][:, units], label[~test], 3, penalty)
            cut = np.column_stack((full[:, units], full[:, -1]))
            if (reached := accuracy(again if readout == "refit" else cut, units)) >= goal - 1e-7:
                break
        assert (found["size"].values[member], found.group_accuracy.values[member]) == pytest.approx((size, reached))


def test_a_group_that_cannot_reach_its_share_is_said_to_be_none() -> None:
    found = group_in(planted(3), GroupRule(largest=2), seed=0).isel(member=0)
    assert np.isnan(found["size"].item())
    assert np.isnan(found.group_accuracy.item())
    assert not found.in_group.any()


def test_rankings_differ_where_one_label_or_all_labels_need_a_unit() -> None:
    weights = torch.tensor([[[3.0, 2.0, 0.0], [0.0, 2.0, 0.0]]])  # (problem, label, unit and bias)
    assert rank(weights, "sum").tolist() == [[1, 0]]
    assert rank(weights, "max").tolist() == [[0, 1]]


def test_shap_values_of_a_linear_score_by_brute_force() -> None:
    """What `_shap` takes for granted: the Shapley value of unit j is w_j (x_j - mean x_j), over all orders of units."""
    w, x, mean = RANDOM.standard_normal((3, 4))
    for unit in range(4):
        gains = []
        for order in itertools.permutations(range(4)):
            known = list(order[: order.index(unit)])
            value = [np.where(np.isin(np.arange(4), units), x, mean) @ w for units in (known, [*known, unit])]
            gains.append(value[1] - value[0])
        assert np.mean(gains) == pytest.approx(w[unit] * (x[unit] - mean[unit]))


TASK = lookup_tables.generate()
ROWS = [*TASK.splits["heldout_compositions"], *TASK.splits["new_compositions"]]


@pytest.fixture
def population() -> Population:
    words = {"source": Vocabulary.source(TASK).words, "target": Vocabulary.target(TASK).words}
    architecture = Seq2Seq(source_words=19, target_words=12, hidden=8)
    return Population.initial(architecture, [Member("a", 0), Member("b", 1)], ["pytorch"] * 2, words)


def test_labels_stand_where_their_table_is_read_and_written(population: Population) -> None:
    rows = ROWS[::30][:3]
    encoder = probe_data(population, rows, "encoder.hidden", "current_table")
    decoder = probe_data(population, rows, "decoder.hidden", "current_table")
    wanted = [table for row in rows for table in row.source[1:-1]]
    for data in (encoder, decoder):
        assert [data.classes[label] for label in data.label] == wanted
        assert data.sentence.tolist() == [0, 0, 1, 1, 2, 2]
        assert data.values.std(dim=1, correction=0).mean(dim=1).numpy() == pytest.approx(np.ones(2), rel=1e-5)


def test_a_decoder_step_carries_the_label_of_what_it_is_aligned_with(population: Population) -> None:
    """Whatever the task says: here the second step writes about the third source position, and the other way round."""
    rows = [dataclasses.replace(row, alignment=(0, 2, 1, 3)) for row in ROWS[::30][:3]]
    data = probe_data(population, rows, "decoder.hidden", "current_table")
    wanted = [row.source[place] for row in rows for place in (2, 1)]
    assert [data.classes[label] for label in data.label] == wanted


def test_a_probe_reads_the_word_off_the_embedding_and_nothing_off_shuffled_labels(population: Population) -> None:
    result = diagnostic_probe(population, ROWS, "encoder.embedding", "current_table")
    assert result.accuracy.values == pytest.approx([1.0, 1.0])
    assert (result.shuffled < 0.5).all()
    assert result.weight.dims == ("member", "label", "unit")
    assert result.attrs["most_frequent"] < 0.3


def test_one_member_at_a_time_finds_the_same_group(population: Population) -> None:
    both = functional_group(population, ROWS, "encoder.hidden", "current_table")
    for name in population.names:
        one = functional_group(population.select([name]), ROWS, "encoder.hidden", "current_table")
        assert one["size"].item() == both["size"].sel(member=name).item()
        assert (one.in_group.values[0] == both.in_group.sel(member=name).values).all()


def test_methods_leave_the_population_as_it_was(population: Population) -> None:
    before, state = population.store.clone(), torch.random.get_rng_state()
    functional_group(population, ROWS, "decoder.update_gate", "time_step")
    assert torch.equal(population.store, before)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert population.store.grad is None


ONE_TABLE = [row for row in TASK.splits["train"] if row.source[1:-1] == ("t1",)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: diagnostic_probe(p, ROWS, "encoder.hiden", "time_step"), "Did you mean 'encoder.hidden'"),
        (lambda p: diagnostic_probe(p, ROWS, "encoder.hidden", "timestep"), "Did you mean 'time_step'"),
        (lambda p: diagnostic_probe(p, ONE_TABLE, "encoder.hidden", "current_table"), "has 1 class on these examples"),
        (lambda p: diagnostic_probe(p, ROWS[:1], "encoder.hidden", "time_step"), "give two sentences or more"),
        (lambda p: diagnostic_probe(p, ROWS, "encoder.hidden", "time_step", penalty=-1.0), "penalty is -1.0; it must be 0"),
        (lambda p: diagnostic_probe(p, ROWS, "encoder.hidden", "time_step", steps=0), "steps is 0"),
        (lambda _: GroupRule(ranking="mean"), "unknown ranking 'mean'"),
        (lambda _: GroupRule(readout="maks"), "Did you mean 'mask'"),
        (lambda _: GroupRule(share=0.0), "share is 0.0; it is the share of the full accuracy"),
        (lambda _: GroupRule(largest=0), "largest is 0; a group has 1 unit or more"),
    ],
)
def test_wrong_calls(population: Population, call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(population)
