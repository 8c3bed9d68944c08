"""Transplants and pruning: what moves, what stays, and that nothing hears a removed unit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from partwise.errors import InputError
from partwise.interventions.prune import at_random, prune, strongest
from partwise.interventions.transplant import transplant
from partwise.layers.tap import Recorder, Replace
from partwise.methods.unit_strength import unit_strength
from partwise.models.seq2seq import Seq2Seq
from partwise.parts import mask_of
from partwise.population import Member, Population

SHAPES = [{}, {"cell": "lstm"}, {"full_focus": False}, {"full_focus": False, "attention": "post-rnn"}]
WIDTH = 6


def drawn(names: str = "ab", first_seed: int = 0, **sizes: object) -> Population:
    architecture = Seq2Seq(**{"source_words": 9, "target_words": 8, "hidden": WIDTH, "decoder_embedding": 5} | sizes)
    members = [Member(name, first_seed + i) for i, name in enumerate(names)]
    made = Population.initial(architecture, members, ["pytorch"] * len(names), {"source": ["x"], "target": ["y"]})
    return made.to(dtype=torch.float64)


def scores(population: Population, name: str, tap: object = None) -> torch.Tensor:
    more = {} if tap is None else {"tap": tap}
    source, length = torch.tensor([[3, 4, 5, 6], [6, 5, 4, 0]]), torch.tensor([4, 3])
    forced = torch.tensor([[1, 2, 3, 4]] * 2)
    force = torch.ones(2, dtype=torch.bool)
    return population.architecture.forward(population.member(name), source, length, 4, forced, force, **more).logits


def test_keeping_every_unit_changes_nothing() -> None:
    kept = np.ones((2, WIDTH), bool)
    whole = drawn()
    same = prune(whole, {"encoder": kept, "decoder": kept})
    assert torch.equal(same.population.store, whole.store)
    assert not same.held.any()


@pytest.mark.parametrize("sizes", SHAPES)
def test_nothing_reads_a_removed_unit(sizes: dict[str, object]) -> None:
    population = drawn(**sizes)
    kept = {"encoder": np.zeros((2, WIDTH), bool), "decoder": np.zeros((2, WIDTH), bool)}
    kept["encoder"][:, [0, 2, 5]] = True
    kept["decoder"][:, [1, 2]] = True
    pruned = prune(population, kept).population
    for side in kept:
        spared = (
            kept[side][0] | kept["decoder"][0]
        )  # the encoder's last state is where the decoder's unit of that number starts
        noise = torch.from_numpy(np.where(spared, 0.0, np.random.default_rng(0).standard_normal(WIDTH)))
        disturbed = scores(pruned, "a", Replace(f"{side}.hidden", lambda value, noise=noise: value + noise))
        assert torch.allclose(disturbed, scores(pruned, "a"), rtol=1e-12, atol=1e-13)
        heard = scores(pruned, "a", Replace(f"{side}.hidden", lambda value: value + 0.1))
        assert not torch.allclose(heard, scores(pruned, "a"), rtol=1e-3)


@pytest.mark.parametrize("sizes", SHAPES)
def test_a_removed_encoder_unit_is_silent(sizes: dict[str, object]) -> None:
    kept = np.ones((2, WIDTH), bool)
    kept[:, 3] = False
    pruned = prune(drawn(**sizes), {"encoder": kept}).population
    recorder = Recorder(["encoder.hidden"])
    scores(pruned, "b", recorder)
    assert (recorder["encoder.hidden"][..., 3] == 0).all()
    assert (recorder["encoder.hidden"][..., 2] != 0).all()


def test_held_marks_exactly_the_removed_numbers_and_the_population_is_untouched() -> None:
    population = drawn()
    before = population.store.clone()
    kept = np.ones((2, WIDTH), bool)
    kept[1, 4] = False
    pruned = prune(population, {"encoder": kept})
    assert torch.equal(population.store, before)
    assert not pruned.held[0].any()
    assert (pruned.population.store.numpy()[pruned.held] == 0).all()
    changed = (pruned.population.store != before).numpy()
    assert (changed <= pruned.held).all()
    assert pruned.held.sum() > 0


@pytest.mark.parametrize("sizes", SHAPES)
def test_strength_is_the_norm_of_all_weights_that_removal_takes(sizes: dict[str, object]) -> None:
    """A second road to the same number: remove the unit, and see how much weight (biases aside) has gone."""
    population = drawn(**sizes)
    bias = mask_of(population.architecture, [name for name in population.parameters if name.endswith(".bias")])
    for side in ("encoder", "decoder"):
        strength = unit_strength(population, side)
        for unit in range(WIDTH):
            kept = np.ones((2, WIDTH), bool)
            kept[:, unit] = False
            held = prune(population, {side: kept}).held & ~bias
            squares = np.where(held, population.store.numpy() ** 2, 0.0).sum(1)
            corner = population.parameters[f"{side}.recurrent.weight"].numpy()  # W_uu stands in a row and in a column
            gates = corner.shape[1] // WIDTH
            twice = sum(corner[:, gate * WIDTH + unit, unit] ** 2 for gate in range(gates))
            assert strength.values[:, unit] == pytest.approx(np.sqrt(squares + twice))


def test_the_strongest_and_random_units_are_as_many_as_asked_for() -> None:
    population = drawn()
    strength = unit_strength(population, "encoder").values
    units = strongest(population, "encoder", 0.34)
    assert units.sum(1).tolist() == [2, 2]
    for row in range(2):
        assert set(np.flatnonzero(units[row])) == set(np.argsort(strength[row])[-2:])
    random = at_random(population, "encoder", 0.34, seed=1)
    assert random.sum(1).tolist() == [2, 2]
    assert (at_random(population, "encoder", 0.34, seed=1) == random).all()


def test_a_transplant_moves_the_part_and_nothing_else() -> None:
    hosts, donors = drawn("ab"), drawn("cd", first_seed=5)
    before = hosts.store.clone(), donors.store.clone()
    made = transplant(hosts, donors, ["encoder.recurrent", "decoder.embedding"])
    for name, values in made.parameters.items():
        of_donor = name.startswith("encoder.recurrent.") or name == "decoder.embedding.weight"
        assert torch.equal(values, (donors if of_donor else hosts).parameters[name])
    assert torch.equal(hosts.store, before[0])
    assert torch.equal(donors.store, before[1])
    assert made.names == hosts.names


def test_each_host_can_get_a_part_of_its_own_down_to_one_gate() -> None:
    hosts, donors = drawn("ab"), drawn("cd", first_seed=5)
    made = transplant(hosts, donors, [["attention"], ["decoder.input.update_gate"]])
    assert torch.equal(made.parameters["attention.key.weight"][0], donors.parameters["attention.key.weight"][0])
    assert torch.equal(made.parameters["attention.key.weight"][1], hosts.parameters["attention.key.weight"][1])
    gate = slice(WIDTH, 2 * WIDTH)  # PyTorch's order: reset, update, candidate
    for kind in ("weight", "bias"):
        name = f"decoder.input.{kind}"
        expected = hosts.parameters[name][1].clone()
        expected[gate] = donors.parameters[name][1][gate]
        assert torch.equal(made.parameters[name][1], expected)
        assert torch.equal(made.parameters[name][0], hosts.parameters[name][0])


def test_a_whole_donor_is_the_donor() -> None:
    hosts, donors = drawn("ab"), drawn("cd", first_seed=5)
    assert torch.equal(transplant(hosts, donors, ["encoder", "decoder", "attention", "focus"]).store, donors.store)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: transplant(p, drawn(hidden=7), ["encoder"]), "a part fits only where sizes are equal"),
        (lambda p: transplant(p, drawn("abc"), ["encoder"]), "3 donors for 2 hosts"),
        (lambda p: transplant(p, drawn(), ["encodr"]), "Did you mean 'encoder'"),
        (lambda p: transplant(p, drawn(), ["encoder.input.updat_gate"]), "Did you mean"),
        (lambda p: transplant(p, drawn(), ["decoder.output.update_gate"]), "unknown part of the model"),
        (lambda p: transplant(p, drawn(), [["encoder"]]), "1 lists of parts for 2 hosts"),
        (lambda p: transplant(p, drawn(), []), "parts is empty; name at least one part"),
        (lambda p: strongest(p, "encoder", 0.01), "share is 0.01; of 6 units that keeps 0"),
        (lambda p: strongest(p, "encoder", 1.5), "share is 1.5"),
        (lambda p: strongest(p, "encodr", 0.5), "Did you mean 'encoder'"),
        (lambda p: prune(p, {"encoder": np.zeros((2, WIDTH), bool)}), "no unit of the encoder would be left"),
        (
            lambda p: prune(p, {"encoder": np.ones((2, WIDTH + 1), bool)}),
            r"marks 2 x 7 units of the encoder; this population has 2 x 6",
        ),
    ],
)
def test_wrong_calls(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(drawn())


def test_other_words_do_not_fit() -> None:
    other = Population(drawn().architecture, drawn().members, drawn().store, {"source": ["z"], "target": ["y"]})
    with pytest.raises(InputError, match="read different vocabularies"):
        transplant(drawn(), other, ["encoder"])
