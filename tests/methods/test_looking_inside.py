"""Weight maps, gate saturation and activation ranges, against a plain loop over members, sentences and steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from partwise.errors import InputError
from partwise.layers.tap import Recorder
from partwise.methods.activation_range import activation_range
from partwise.methods.gate_saturation import gate_saturation, other_convention
from partwise.methods.weight_map import row_norms, weight_map
from partwise.models.seq2seq import Seq2Seq
from partwise.population import Member, Population
from partwise.tasks import lookup_tables
from partwise.tasks._contract import Example
from partwise.tasks._encoding import Vocabulary

TASK = lookup_tables.generate()
EXAMPLES = [*TASK.splits["new_compositions"][:6], *TASK.splits["train"][:6], *TASK.splits["longer_compositions_new"][:3]]


@pytest.fixture
def population() -> Population:
    words = {"source": Vocabulary.source(TASK).words, "target": Vocabulary.target(TASK).words}
    architecture = Seq2Seq(source_words=19, target_words=12, hidden=6)
    made = Population.initial(architecture, [Member("a", 0), Member("b", 1)], ["pytorch"] * 2, words)
    made.store *= 4  # so that some gates saturate
    return made


def by_hand(population: Population, site: str, name: str) -> list[tuple[Example, int, np.ndarray]]:
    """(example, time, values) of one member, one unpadded sentence at a time."""
    found = []
    source = Vocabulary(population.words["source"])
    for example in EXAMPLES:
        recorder = Recorder([site])
        ids, steps = torch.tensor([source.ids(example.source)]), len(example.target) + 1
        population.architecture.forward(population.member(name), ids, torch.tensor([ids.shape[1]]), steps, tap=recorder)
        found += [(example, t, values.numpy()) for t, values in enumerate(recorder[site][0])]
    return found


@pytest.mark.parametrize("gate", ["encoder.update_gate", "decoder.reset_gate"])
def test_saturation_counts_steps_below_and_above(population: Population, gate: str) -> None:
    result = gate_saturation(population, EXAMPLES, [gate])
    for name in "ab":
        values = np.stack([value for _, _, value in by_hand(population, gate, name)])
        one = result.sel(member=name, gate=gate)
        assert one.left.values == pytest.approx((values < 0.1).mean(0))
        assert one.right.values == pytest.approx((values > 0.9).mean(0))
        assert one.between.values == pytest.approx(((values >= 0.1) & (values <= 0.9)).mean(0))
    assert float(result.left.max()) > 0.2


def test_the_other_convention_swaps_update_gates_only(population: Population) -> None:
    gates = ["encoder.update_gate", "encoder.reset_gate"]
    ours = gate_saturation(population, EXAMPLES, gates)
    theirs = other_convention(ours)
    assert (theirs.left.sel(gate=gates[0]) == ours.right.sel(gate=gates[0])).all()
    assert (theirs.right.sel(gate=gates[0]) == ours.left.sel(gate=gates[0])).all()
    assert (theirs.left.sel(gate=gates[1]) == ours.left.sel(gate=gates[1])).all()


def test_ranges_and_specialisation(population: Population) -> None:
    result = activation_range(population, EXAMPLES, "decoder.hidden", "current_table")
    found = by_hand(population, "decoder.hidden", "b")
    values = np.stack([value for _, _, value in found])
    assert result.value.sel(member="b", level=0.0).values == pytest.approx(values.min(0))
    assert result.value.sel(member="b", level=0.5).values == pytest.approx(np.median(values, 0), abs=1e-6)
    labelled = [(example.probes["current_table"][t], value) for example, t, value in found]
    kept = np.stack([value for label, value in labelled if label is not None])
    groups: dict[str, list[np.ndarray]] = {}
    for label, value in labelled:
        if label is not None:
            groups.setdefault(str(label), []).append(value)
    within = sum(np.var(np.stack(group), axis=0) * len(group) for group in groups.values()) / len(kept)
    assert result.specialisation.sel(member="b").values == pytest.approx(1 - within / kept.var(0), abs=1e-5)


def test_a_unit_that_is_the_label_is_fully_specialised(population: Population) -> None:
    table = population.parameters["encoder.embedding.weight"]
    table[:, :, 0] = torch.arange(19.0)  # the word itself: determined by the current table wherever there is one
    result = activation_range(population, EXAMPLES, "encoder.embedding", "current_table")
    assert result.specialisation.values[:, 0] == pytest.approx(1.0)


def test_weight_maps_carry_words(population: Population) -> None:
    result = weight_map(population, "decoder.embedding.weight")
    assert list(result.row.values[:5]) == ["<pad>", "<unk>", "<sos>", "<eos>", "000"]
    expected = population.member("b").parameters["decoder.embedding.weight"][2].norm().item()
    assert row_norms(result).sel(member="b", row="<sos>").item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: gate_saturation(p, EXAMPLES, ["encoder.updat_gate"]), "Did you mean 'encoder.update_gate'"),
        (lambda p: gate_saturation(p, EXAMPLES, ["encoder.hidden"]), "encoder.hidden is no gate"),
        (lambda p: gate_saturation(p, EXAMPLES, ["encoder.reset_gate"], left=0.9, right=0.1), "left is 0.9 and right is 0.1"),
        (lambda p: activation_range(p, EXAMPLES, "encoder.hidden", "tabel"), "unknown probe label 'tabel'"),
        (lambda p: activation_range(p, EXAMPLES[:1], "encoder.hidden", "current_table"), "has 1 class on these examples"),
        (lambda p: weight_map(p, "decoder.embeding.weight"), r"Did you mean 'decoder.embedding.weight'\?"),
        (lambda p: weight_map(p, "decoder.input.bias"), "decoder.input.bias is a vector a member; a map needs a matrix"),
    ],
)  # fmt: skip
def test_wrong_calls(population: Population, call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(population)
